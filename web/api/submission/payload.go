package submission

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func payloadType(location, name string) (registry.PayloadType, []wire.Fault) {
	if name == "" {
		return registry.AutoType, nil
	}
	t, err := intake.ParseType(name)
	if err != nil {
		return "", []wire.Fault{{Location: location, Message: err.Error(), Found: name}}
	}
	return t, nil
}

// urlFault says why a payload cannot be fetched from an address, and else the name that the address
// gives it. What is at the address, and whether it may be asked, is for the workers to find out.
func urlFault(location, raw string) (faults []wire.Fault, name string) {
	const most = 8192
	fault := func(format string, args ...any) ([]wire.Fault, string) {
		return []wire.Fault{{Location: location, Message: fmt.Sprintf(format, args...)}}, ""
	}
	if len(raw) > most {
		return fault("%d bytes long; at most %d can be kept", len(raw), most)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fault("it has a space or a control character; write a space as %%20")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fault("it is no well-formed URL; check the percent signs, the host and the port")
	}
	if u.User != nil {
		return fault("a name or a password does not belong there; take it out and have an admin store it for the collection (holdfast collection credential set)")
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
	case source.S3Scheme:
		a, err := source.ParseS3(raw)
		if err != nil {
			return fault("%s", err.Error())
		}
		if name = path.Base(a.Key); valid.Name("", name) != nil {
			name = a.Bucket
		}
		return nil, name
	case "":
		return fault("it has no scheme; begin it with https://, or upload the file first")
	case "file":
		return fault("the server cannot read your files; upload it first and give the upload_id")
	case "upload":
		return fault("give the id of an upload as upload_id")
	default:
		return fault("scheme %q cannot be fetched; use http, https or s3, or upload the file first", u.Scheme)
	}
	if u.Hostname() == "" {
		return fault("it names no host")
	}
	if name = path.Base(u.Path); name == "." || name == "/" || valid.Name("", name) != nil {
		name = u.Hostname()
	}
	return nil, name
}

// objectARK returns an object's ARK in the form in which it is kept, "" for none.
func objectARK(location, text string) (string, []wire.Fault) {
	if text == "" {
		return "", nil
	}
	ark, err := noid.ParseARK(text)
	if err != nil {
		return "", []wire.Fault{{Location: location, Message: err.Error(), Found: text}}
	}
	ark = ark.Normalize()
	if ark.Qualifier != "" {
		return "", []wire.Fault{{
			Location: location, Message: fmt.Sprintf("it names a part of an object; give the object's own, %s", ark.Base()), Found: text,
		}}
	}
	return ark.String(), nil
}

// MailLimits bound what depositors and operators can have mailed to others than themselves and the
// collection's own people.
type MailLimits struct {
	Domains    []string // whose addresses every submission may name, beside those that the collection's profile allows
	TokenDaily int64    // how many such addresses the submissions of a token may name in a day; 0: any number
}

// mailTerms are what the asker's submissions are bound by; an admin, who could change them, is not.
func (s *Service) mailTerms(ctx context.Context) *registry.MailTerms {
	token := access.Of(ctx).Token
	if token.Role == registry.RoleAdmin {
		return nil
	}
	own, err := registry.MailAddress(token.Name) // which an admin gave
	if err != nil {
		own = ""
	}
	return &registry.MailTerms{Token: token.Name, Own: own, Domains: s.Mails.Domains, Daily: s.Mails.TokenDaily}
}
