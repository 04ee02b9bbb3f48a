package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// MailKind says what a mail tells.
type MailKind string

// The kinds of mails.
const (
	MailQueued MailKind = "queued" // a batch was taken in
	MailReport MailKind = "report" // what a batch's report of one closing says
	MailFailed MailKind = "failed" // a batch could not be expanded
	// MailStopped: an admin ended a batch for good, so that no report will come of it.
	MailStopped MailKind = "stopped"
	MailSafe    MailKind = "safe"   // every copy of all that was in a batch was read back: the depositor's own may go
	MailDigest  MailKind = "digest" // what waits for the operators
)

// MostMailAddresses is how many addresses a submission, or a collection, can name.
const MostMailAddresses = 50

// MailAddress returns the address in a text, which may be Name <address>, without the name.
// ErrInvalid when there is none, or more than one.
func MailAddress(text string) (string, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(a.Address, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return "", fmt.Errorf("%w: %q is no mail address", ErrInvalid, text)
	}
	return a.Address, nil
}

// MailAddresses are those that are told of a batch: the collection's and the submission's, each
// once, in this order.
func (s Spec) MailAddresses() []string {
	all := s.Notify
	if s.Profile.Mail != nil {
		all = slices.Concat(s.Profile.Mail.To, s.Notify)
	}
	var out []string
	seen := map[string]bool{}
	for _, text := range all {
		address, err := MailAddress(text) // what is none was refused when it came
		if key := mailbox(address); err == nil && !seen[key] {
			seen[key] = true
			out = append(out, address)
		}
	}
	return out
}

// mailbox is an address without what makes no difference: how its domain is written.
func mailbox(address string) string {
	at := strings.LastIndexByte(address, '@')
	return address[:at+1] + strings.ToLower(address[at+1:])
}

// MailTerms say to whom a submission may have mails sent, beside its collection's own people
// ([MailRules.To]) and the submitter.
type MailTerms struct {
	Token   string   `json:"token"`             // whose submissions the limit counts together: the token's name
	Own     string   `json:"own,omitempty"`     // the submitter's own address; "" when it is not known
	Domains []string `json:"domains,omitempty"` // whose addresses the service allows, as [CheckMailDomain] takes them
	Daily   int64    `json:"daily,omitempty"`   // how many addresses of others the token's submissions may name in a day (UTC); 0: any number
}

// Judge counts the addresses of others among those that a submission names, each once.
// *MailRefusedError names those that nobody has allowed: they are neither the submitter's own nor
// in the collection's [MailRules] nor in a domain of the service's list.
func (m MailTerms) Judge(c Collection, notify []string) (others int64, err error) {
	var rules MailRules
	if c.Profile.Mail != nil {
		rules = *c.Profile.Mail
	}
	known := map[string]bool{mailbox(m.Own): m.Own != ""}
	for _, text := range rules.To {
		if address, err := MailAddress(text); err == nil {
			known[mailbox(address)] = true
		}
	}
	allowed := slices.Concat(rules.Allow, m.Domains)
	var refused []string
	for _, text := range notify {
		address, err := MailAddress(text)
		if err != nil {
			return 0, err
		}
		if known[mailbox(address)] {
			continue
		}
		known[mailbox(address)] = true
		others++
		if !slices.ContainsFunc(allowed, func(rule string) bool { return mailMatches(rule, address) }) {
			refused = append(refused, address)
		}
	}
	if len(refused) > 0 {
		return 0, &MailRefusedError{Collection: c.Mnemonic, Addresses: refused}
	}
	return others, nil
}

// mailMatches says whether a rule of [MailRules.Allow] is about an address. A domain is about plain
// addresses only: with quotes before the @ a mail server may be made to see another domain.
func mailMatches(rule, address string) bool {
	if strings.Contains(rule, "@") {
		one, err := MailAddress(rule)
		return err == nil && mailbox(one) == mailbox(address)
	}
	local, domain, plain := strings.Cut(mailbox(address), "@")
	if !plain || strings.ContainsAny(local, `"%!`) || strings.Contains(domain, "@") {
		return false
	}
	rule = strings.ToLower(rule)
	if parent, below := strings.CutPrefix(rule, "*"); below {
		return strings.HasSuffix(domain, parent)
	}
	return domain == rule
}

var aMailDomain = regexp.MustCompile(`^(\*\.)?([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`)

// CheckMailDomain returns ErrInvalid unless a text is a domain of mail addresses, such as example.org, or *.example.org for all below it.
func CheckMailDomain(text string) error {
	const most = 255
	if len(text) > most || !aMailDomain.MatchString(text) {
		return fmt.Errorf("%w: %q is no domain; write example.org, or *.example.org for all below it (and its ASCII form, xn--..., when it has one)", ErrInvalid, text)
	}
	return nil
}

// CheckMailRule returns ErrInvalid unless a text can stand in [MailRules.Allow]: an address, or a domain.
func CheckMailRule(text string) error {
	if !strings.Contains(text, "@") {
		return CheckMailDomain(text)
	}
	if address, err := MailAddress(text); err != nil {
		return err
	} else if address != text {
		return fmt.Errorf("%w: %q is more than a mail address", ErrInvalid, text)
	}
	return nil
}

// MailRefusedError says that a submission names addresses to which its submitter may not have mails sent.
type MailRefusedError struct {
	Collection string   `json:"collection"`
	Addresses  []string `json:"addresses"`
}

// Error names the addresses in part, since it is kept for longer than they are, the rule, and what to do.
func (e *MailRefusedError) Error() string {
	masked := make([]string, len(e.Addresses))
	for i, address := range e.Addresses {
		masked[i] = MaskAddress(address)
	}
	return e.naming(masked)
}

// InFull is Error for whoever named the addresses: it tells them apart. It is for the answer alone, which nobody keeps.
func (e *MailRefusedError) InFull() string { return e.naming(e.Addresses) }

func (e *MailRefusedError) naming(addresses []string) string {
	return fmt.Sprintf("mails about collection %s may not go to %s: an address must be the submitter's own, stand in the collection's profile (mail.to or "+
		"mail.allow), or be in a domain that the service allows (HOLDFAST_MAIL_DOMAINS); leave it out, or have an admin allow it",
		e.Collection, strings.Join(addresses, ", "))
}

// MailLimitError says that a token's submissions have named as many addresses of others as they may in a day.
type MailLimitError struct {
	Token string    `json:"token"`
	Daily int64     `json:"daily"`
	Used  int64     `json:"used"`
	Need  int64     `json:"need"`
	Until time.Time `json:"until"` // when the next day begins
}

// Error names the limit, how much of it is used, and what to do.
func (e *MailLimitError) Error() string {
	text := fmt.Sprintf("the submission names %d addresses of others, and submissions of token %s have named %d of the %d that they may in a day",
		e.Need, e.Token, e.Used, e.Daily)
	if e.Need > e.Daily {
		return text + "; name fewer, or have an admin raise HOLDFAST_MAIL_TOKEN_DAILY"
	}
	return text + fmt.Sprintf("; submit without them, or from %s on, or have an admin raise HOLDFAST_MAIL_TOKEN_DAILY", e.Until.UTC().Format(time.RFC3339))
}

// mailID is the id of a mail: the same for the same message to the same address. The address cannot be read from it.
func (d DeliverySpec) mailID() string {
	about := d.Subject + "_" + string(d.Mail)
	switch d.Mail {
	case MailReport, MailSafe:
		about += fmt.Sprintf("_%d", d.Closing)
	case MailFailed:
		about += fmt.Sprintf("_%d", d.Times)
	case MailDigest:
		about = fmt.Sprintf("%s_%d", d.Mail, d.Period)
	case MailStopped: // once, or twice when it was aborted first and is asked for again after it was deleted
		about += "_" + strings.ToLower(string(d.State))
	case MailQueued: // once for all
	}
	sum := sha256.Sum256([]byte(mailbox(d.To)))
	return "msg_" + about + "_" + hex.EncodeToString(sum[:8])
}

// mailTold says for people what a mail tells.
func (d DeliverySpec) mailTold() string {
	switch d.Mail {
	case MailQueued:
		return "batch " + d.Subject + " was taken in"
	case MailReport:
		return fmt.Sprintf("report %d of batch %s", d.Closing, d.Subject)
	case MailFailed:
		return "batch " + d.Subject + " could not be read"
	case MailStopped:
		return "batch " + d.Subject + " was ended by an admin"
	case MailSafe:
		return "batch " + d.Subject + " is safe"
	case MailDigest:
		return "what waits for operators"
	}
	return string(d.Mail)
}

// MaskAddress shows enough of a mail address to tell one from another, for what is kept longer than the address itself.
func MaskAddress(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return address
	}
	first := []rune(address[:at])[0]
	return string(first) + "***" + address[at:]
}

// Safety says whether every copy of what was in a batch is known to be right.
type Safety struct {
	Objects  int64    `json:"objects"`  // versions that the batch's completed jobs made
	Storages []string `json:"storages"` // that each of them is to be in, by the batch's profile
	// Missing are versions without a verified replica in one of these, Damaged objects with files that are known not to be
	// right in some storage, Gone objects that were deleted, or are being deleted. Leaving are objects whose deletion was asked
	// for or approved and has not begun: they stay, or go.
	Missing int64 `json:"missing"`
	Damaged int64 `json:"damaged"`
	Gone    int64 `json:"gone"`
	Leaving int64 `json:"leaving"`
	// VerifiedAt is when the replica that was read longest ago was read.
	VerifiedAt time.Time `json:"verified_at,omitzero"`
}

// Safe says that the depositor's copy is not needed any more.
func (s Safety) Safe() bool {
	return s.Objects > 0 && len(s.Storages) > 0 && s.Missing == 0 && s.Damaged == 0 && s.Gone == 0 && s.Leaving == 0
}

// Attention is what operators are told of beside failures, holds and deletions.
type Attention struct {
	// Undelivered is how many messages could not be delivered yet, or at all; Messages are some of them.
	Undelivered int64      `json:"undelivered"`
	Messages    []Delivery `json:"messages,omitempty"`
	// Oldest is the batch or job that has waited longest; nil when none waits.
	Oldest *WorkItem `json:"oldest,omitempty"`
}

// DigestRequest says to whom and how often operators are told what waits for them.
type DigestRequest struct {
	To []string `json:"to"`
	// A period begins Offset after each multiple of Every since 1970, UTC.
	Every  time.Duration `json:"every"`
	Offset time.Duration `json:"offset"`
}

// Check returns ErrInvalid for what cannot be carried out.
func (r DigestRequest) Check() error {
	if len(r.To) > MostMailAddresses || r.Every < time.Minute || r.Offset < 0 {
		return fmt.Errorf("%w: digests go to %d addresses at most, once a minute at most", ErrInvalid, MostMailAddresses)
	}
	for _, a := range r.To {
		if address, err := MailAddress(a); err != nil {
			return err
		} else if address != a {
			return fmt.Errorf("%w: %q is more than a mail address", ErrInvalid, a)
		}
	}
	return nil
}

// Period is the period that a moment is in: its beginning and its end.
func (r DigestRequest) Period(at time.Time) (begin, end time.Time) {
	n := at.Add(-r.Offset).UnixMicro() / r.Every.Microseconds()
	begin = time.UnixMicro(n * r.Every.Microseconds()).Add(r.Offset).UTC()
	return begin, begin.Add(r.Every)
}

// Mailing is what mails are made of that nobody else asks.
type Mailing interface {
	// BatchSafety looks at every copy of what the completed jobs of a batch have stored. ErrNotFound for what is no batch.
	BatchSafety(ctx context.Context, batchID string) (Safety, error)
	// Attention looks at what waits for operators.
	Attention(ctx context.Context) (Attention, error)
}
