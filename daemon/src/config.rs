//! The daemon's configuration: the file, the environment and where things are. Nothing else reads the environment.
