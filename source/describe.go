package source

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// describe reads an answer's headers. The size is that of the body, which in a 206 is not the whole
// file.
func (x *exchange) describe() (Info, error) {
	header := x.resp.Header
	info := Info{
		URL:         redactURL(x.shown),
		Size:        x.resp.ContentLength,
		Ranges:      strings.EqualFold(strings.TrimSpace(header.Get("Accept-Ranges")), "bytes"),
		ContentType: header.Get("Content-Type"),
		Filename:    x.filename(),
	}
	if etag := header.Get("ETag"); isStrong(etag) {
		info.Validator = etag
	}
	if modified, err := http.ParseTime(header.Get("Last-Modified")); err == nil {
		info.Modified = modified
	}
	return info, x.checkEncoding(info.Filename)
}

// checkEncoding refuses a body that was compressed for transport, because its bytes, size and ETag
// are not those of the file. Servers send the same header for files that are compressed themselves;
// these are recognized by their names.
func (x *exchange) checkEncoding(filename string) error {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(x.resp.Header.Values("Content-Encoding"), ",")))
	var endings []string
	switch encoding {
	case "", "identity":
		return nil
	case "aws-chunked", "binary", "none": // some stores and servers send these and encode nothing
		return nil
	case "gzip", "x-gzip":
		endings = []string{".gz", ".tgz", ".svgz", ".gzip"}
	case "bzip2", "x-bzip2":
		endings = []string{".bz2", ".tbz", ".tbz2"}
	case "xz", "x-xz":
		endings = []string{".xz", ".txz"}
	case "compress", "x-compress":
		endings = []string{".z"}
	case "zstd":
		endings = []string{".zst", ".tzst"}
	}
	for _, ending := range endings {
		if strings.HasSuffix(strings.ToLower(filename), ending) {
			return nil
		}
	}
	return &Error{Op: x.op, URL: redactURL(x.asked), Kind: FaultEncoding, Err: fmt.Errorf("Content-Encoding is %q", encoding)}
}

// filename returns the file's name from the answer's header, or else from the address.
func (x *exchange) filename() string {
	if _, params, err := mime.ParseMediaType(x.resp.Header.Get("Content-Disposition")); err == nil {
		if name, err := baseName(params["filename"]); err == nil {
			return name
		}
	}
	for _, u := range []*url.URL{x.asked, x.shown} {
		path := u.EscapedPath()
		name, err := url.PathUnescape(path[strings.LastIndexByte(path, '/')+1:])
		if err != nil {
			continue
		}
		if name, err := baseName(name); err == nil {
			return name
		}
	}
	return ""
}

// baseName removes folders from a name, with either separator.
func baseName(name string) (string, error) {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
		return "", errors.New("not a file's name")
	}
	return name, nil
}
