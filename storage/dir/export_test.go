package dir

// TellsApart tries two names as Open tries those that file systems may merge.
func (s *Store) TellsApart(a, b string) error { return s.checkNamePair(".", [2]string{a, b}) }
