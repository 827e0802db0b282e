"""What a release says about itself, for people and for registries."""
