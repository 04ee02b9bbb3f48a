package storages

import "time"

// SetTakesLong says how long a count takes that is kept for later processes.
func (s *Manager) SetTakesLong(d time.Duration) { s.takesLong = d }
