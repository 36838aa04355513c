"""What a run replays: the declared settings, aims, and the YAML files of scenarios and clusters."""
