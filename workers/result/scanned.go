package result

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
)

// NameScan is the name of the durable result that says what a scan of what was downloaded came to.
const NameScan = "scan"

// Scanned is what a scan without findings came to.
type Scanned struct {
	Engine string    `json:"engine"` // with its version and that of its signatures
	At     time.Time `json:"at"`
	Clean  int64     `json:"clean"`           // files
	Large  int64     `json:"large,omitempty"` // files that the engine did not see all of
	Unseen []string  `json:"unseen,omitempty"`
}

// ScanOf returns what the scan of an item's files came to.
func ScanOf(item *base.Item) (Scanned, error) {
	return Of[Scanned](item, NameScan, "nothing is noted as scanned; requeue the item at scan")
}

// Detail is the event's text.
func (s *Scanned) Detail() string {
	text := fmt.Sprintf("no virus found in %d files", s.Clean)
	if s.Large == 0 {
		return text
	}
	text += fmt.Sprintf("; %d files were not scanned, being larger than the engine takes: %s", s.Large, strings.Join(s.Unseen, ", "))
	if more := s.Large - int64(len(s.Unseen)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
