"""What a run is to replay: the settings as declared, aims, and the YAML files of scenarios and clusters."""
