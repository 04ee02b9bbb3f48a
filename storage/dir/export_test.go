package dir

import "time"

// TellsApart tries two names as Open tries those that file systems may merge.
func (s *Store) TellsApart(a, b string) error { return s.checkNamePair(".", [2]string{a, b}) }

// Crowded makes a store behave as if a syncfs had just been very slow.
func Crowded(s *Store) {
	until := time.Now().Add(time.Hour)
	s.crowded.Store(&until)
}

// Walking makes a store open names by os.Root only, as if the kernel refused openat2.
func Walking(s *Store) { s.walks = true }
