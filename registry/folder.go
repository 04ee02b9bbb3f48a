package registry

// Folders of an object's files, as File.Path begins with one of them.
const (
	ProducerFolder = "producer/" // what was deposited
	SystemFolder   = "system/"   // what Holdfast says of it
)
