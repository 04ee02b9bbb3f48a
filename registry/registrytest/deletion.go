package registrytest

// Deciders are all of them.
func Deciders() []string { return []string{Asker, Approver, Maker} }
