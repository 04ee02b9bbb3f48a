package ocfl

// checkpoints is the folder of the storage root with the signed ends of the chains of events.
const checkpoints = extensionsFolder + "/holdfast-checkpoints"

// CheckpointKey is where the checkpoint of that name lies in the store; with the name "" it is what
// all of them begin with.
func (r *Root) CheckpointKey(name string) string { return r.prefix + checkpoints + "/" + name }
