package names

// LimitFolders makes n the most folders that are kept.
func (s *Set) LimitFolders(n int) { s.mostFolders = n }
