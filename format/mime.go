package format

import (
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// headLen is how many bytes of a file determine its media type.
const headLen = 3072

// Unknown is the media type of inconclusive content.
const Unknown = "application/octet-stream"

// Empty is the media type of empty content.
const Empty = "application/x-empty"

// Agent is the library that determines media types, with its version.
const Agent = "mimetype v1.4.16"

// Head collects the first bytes written to it, which determine the media type. The zero value is
// ready to use.
type Head struct {
	head []byte
}

// Write implements io.Writer. It never fails.
func (h *Head) Write(p []byte) (int, error) {
	if room := headLen - len(h.head); room > 0 {
		h.head = append(h.head, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// MIME returns the media type of what was written; see the function MIME.
func (h *Head) MIME(name, said string) string { return MIME(h.head, name, said) }

// MIME returns the media type of a file that begins with head, of which it reads at most 3 KiB. The
// content decides. If it is inconclusive, said counts, the depositor's statement, if there is one.
// If it fits several types, as plain text and zip archives do, the extension of name decides. Empty
// content is always Empty.
func MIME(head []byte, name, said string) string {
	if len(head) == 0 {
		return Empty
	}
	found := mimetype.Detect(head[:min(len(head), headLen)])
	if found.Is(Unknown) && said != "" {
		return said
	}
	kind, parameters, _ := strings.Cut(found.String(), ";")
	refined, ok := refinements[kind][strings.ToLower(path.Ext(name))]
	switch {
	case !ok:
		return found.String()
	case parameters != "" && strings.HasPrefix(refined, "text/"):
		return refined + ";" + parameters
	default:
		return refined
	}
}

// refinements has the more specific type by extension, for types that are containers of others. It
// omits types with a signature at their very beginning: if that is missing, the extension is wrong.
var refinements = map[string]map[string]string{
	"text/plain": {
		".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".js": "text/javascript",
		".json": "application/json", ".md": "text/markdown", ".py": "text/x-python", ".srt": "application/x-subrip",
		".tsv": "text/tab-separated-values", ".xml": "text/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	},
	"application/zip": {
		".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
		".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		".kmz":  "application/vnd.google-earth.kmz", ".wacz": "application/x-wacz",
	},
	"application/x-ole-storage": {
		".doc": "application/msword", ".msg": "application/vnd.ms-outlook", ".ppt": "application/vnd.ms-powerpoint",
		".xls": "application/vnd.ms-excel",
	},
}
