"""What a run is asked: settings as declared, and the YAML files of scenarios and clusters."""
