package submission

import (
	"context"
	"errors"
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

// urlFault returns the fault of a payload's address, or else the file name in the address. Workers
// find out what is there and whether it may be fetched.
func urlFault(location, raw string) (faults []wire.Fault, name string) {
	const most = 8192
	fault := func(format string, args ...any) ([]wire.Fault, string) {
		return []wire.Fault{{Location: location, Message: fmt.Sprintf(format, args...)}}, ""
	}
	if faults := valid.Text(location, raw, most); len(raw) > most {
		return faults, ""
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fault("contains a space or a control character; write a space as %%20")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fault("not a valid URL; check the percent signs, the host and the port")
	}
	if u.User != nil {
		return fault("must not contain a user name or password; remove it, and ask an admin to store it for the collection (holdfast collection credential set)")
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
		return fault("has no scheme; start it with https://, or upload the file first")
	case "file":
		return fault("the server cannot read files on your computer; upload the file and give its upload_id")
	case "upload":
		return fault("give the id of an upload as upload_id")
	default:
		return []wire.Fault{valid.Fault(location, registry.Statement{Says: registry.SaysNoScheme, Name: u.Scheme})}, ""
	}
	if u.Hostname() == "" {
		return fault("has no host")
	}
	if name = path.Base(u.Path); name == "." || name == "/" || valid.Name("", name) != nil {
		name = u.Hostname()
	}
	return nil, name
}

// objectARK returns an object's ARK in its stored form, "" for none.
func objectARK(location, text string) (string, []wire.Fault) {
	if text == "" {
		return "", nil
	}
	ark, err := noid.ParseARK(text)
	if wrong := (*noid.ARKError)(nil); errors.As(err, &wrong) {
		return "", []wire.Fault{valid.Found(location, text, registry.Statement{Says: registry.SaysNoARK, Name: wrong.Input, Text: wrong.Reason})}
	}
	ark = ark.Normalize()
	if ark.Qualifier != "" {
		return "", []wire.Fault{valid.Found(location, text, registry.Statement{Says: registry.SaysPart, Name: ark.Base().String()})}
	}
	return ark.String(), nil
}

// MailLimits bound the mails that depositors and operators can cause to addresses other than their
// own and the collection's.
type MailLimits struct {
	Domains    []string // allowed for every submission, in addition to those of the collection's profile
	TokenDaily int64    // such addresses per token and day; 0: any number
}

// mailTerms returns the limits on the caller's submissions. An admin, who could change them, has
// none.
func (s *Service) mailTerms(ctx context.Context) *registry.MailTerms {
	token := access.Of(ctx).Token
	if token.Role == registry.RoleAdmin {
		return nil
	}
	own, err := registry.MailAddress(token.Name) // an admin chose the name
	if err != nil {
		own = ""
	}
	return &registry.MailTerms{Token: token.Name, Own: own, Domains: s.Mails.Domains, Daily: s.Mails.TokenDaily}
}
