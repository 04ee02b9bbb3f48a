package staging

import "github.com/gabriel-vasile/mimetype"

// formatHead is how many bytes of a file its format is told by.
const formatHead = 3072

// unknownFormat is what content comes to that says nothing of itself.
const unknownFormat = "application/octet-stream"

// Format names the format of what passes by, by its first bytes. The zero value is ready to use.
type Format struct {
	head []byte
}

// Write implements io.Writer. It never fails.
func (f *Format) Write(p []byte) (int, error) {
	if room := formatHead - len(f.head); room > 0 {
		f.head = append(f.head, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// Name is the media type; said, which is the depositor's word, when the content says nothing.
func (f *Format) Name(said string) string { return formatOf(f.head, said) }

func formatOf(head []byte, said string) string {
	found := mimetype.Detect(head[:min(len(head), formatHead)])
	if said != "" && found.Is(unknownFormat) {
		return said
	}
	return found.String()
}
