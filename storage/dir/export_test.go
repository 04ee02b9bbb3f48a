package dir

// TellsApart tries two names as Open tries those that file systems may merge.
func (s *Store) TellsApart(a, b string) error { return s.checkNamePair(".", [2]string{a, b}) }

// Walking makes a store open names by os.Root only, as if the kernel refused openat2.
func Walking(s *Store) { s.walks = true }
