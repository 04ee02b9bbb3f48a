package ocfl

// checkpoints is the folder of the storage root with the signed ends of the event chains.
const checkpoints = extensionsFolder + "/holdfast-checkpoints"

// CheckpointKey returns the key of a checkpoint in the store. With an empty name it returns the
// prefix of all checkpoints.
func (r *Root) CheckpointKey(name string) string { return r.prefix + checkpoints + "/" + name }
