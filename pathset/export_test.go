package pathset

// LimitFolders makes n the most folders that are kept.
func (s *Set) LimitFolders(n int) { s.mostFolders = n }

// LimitFiles makes n the most files that are kept.
func (s *Set) LimitFiles(n int) { s.mostFiles = n }
