package result

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
)

// NameScan is the durable result of scanning the downloaded files.
const NameScan = "scan"

// Scanned describes a scan without findings.
type Scanned struct {
	Engine string    `json:"engine"` // with its version and that of its signatures
	At     time.Time `json:"at"`
	Clean  int64     `json:"clean"`           // files
	Large  int64     `json:"large,omitempty"` // files that the engine did not scan completely
	Unseen []string  `json:"unseen,omitempty"`
}

// ScanOf returns the result of scanning an item's files.
func ScanOf(item *base.Item) (Scanned, error) {
	return Of[Scanned](item, NameScan, "no scan is recorded; requeue the item at scan")
}

// Detail is the event's text.
func (s *Scanned) Detail() string {
	text := fmt.Sprintf("no virus found in %d files", s.Clean)
	if s.Large == 0 {
		return text
	}
	text += fmt.Sprintf("; %d files were not scanned, since they are too large for the engine: %s", s.Large, strings.Join(s.Unseen, ", "))
	if more := s.Large - int64(len(s.Unseen)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
