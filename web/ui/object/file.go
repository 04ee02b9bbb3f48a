package object

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

const (
	imagePreview = 32 << 20 // the largest image that is shown
	textPreview  = 64 << 10 // how much of a text is shown
)

// filePage is the content of the page of a file.
type filePage struct {
	Object  registry.Object
	Version int
	File    registry.File
	Name    string
	Crumbs  []crumb
	Folder  string
	Image   bool // it is shown
	// TooLarge reports whether it is an image that is too large to be shown.
	TooLarge bool
	Text     string // the beginning of a text
	Cut      bool   // the text goes on
	Unread   string // why a text is not shown
	Kept     bool   // an embargo keeps it from the viewer
}

// file shows a file: what is recorded of it, and a preview. An image is an element of the page; a
// browser runs nothing in one. A text is shown as text, whatever it is: HTML and SVG are sources.
func (p pages) file(r *http.Request, o registry.Object, v registry.ObjectVersion, name string) (page.Page, error) {
	ctx := r.Context()
	f, err := p.API.File(ctx, o.ID, v.Version, name)
	if err != nil {
		return page.Page{}, err
	}
	folder := name[:strings.LastIndexByte(name, '/')+1]
	out := filePage{Object: o, Version: v.Version, File: f, Name: path.Base(name), Folder: folder, Crumbs: crumbsOf(folder)}
	_, out.Kept = p.Embargoed(ctx, o)
	switch image := isImage(f.MIMEType); {
	case out.Kept, o.Gone != "" || !p.May(ctx, "object-content"):
	case image:
		out.Image, out.TooLarge = f.SizeBytes <= imagePreview, f.SizeBytes > imagePreview
	case isText(f.MIMEType) && f.SizeBytes > 0:
		text, err := p.API.Beginning(ctx, o.ID, v.Version, name, textPreview)
		if problem := (*wire.Problem)(nil); errors.As(err, &problem) {
			out.Unread = problem.Detail
		} else if err != nil {
			return page.Page{}, err
		}
		out.Text, out.Cut = shown(text), f.SizeBytes > int64(len(text))
	}
	return page.Page{Name: "file", Title: shownName(out.Name), Section: "objects", Content: out}, nil
}

// isImage reports whether every browser shows files of this type as images, and runs nothing in them.
func isImage(mime string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mime)
}

// isText reports whether people can read files of this type.
func isText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "+json") ||
		slices.Contains([]string{"application/json", "application/xml", "application/jsonl", "application/yaml", "application/javascript"}, mime)
}

// shown returns a text without what is no text, and without a character that is cut off at its end.
func shown(text []byte) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) && !utf8.FullRune(text[len(text)-n:]) {
			text = text[:len(text)-n]
			break
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
