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

// MailKind is the kind of a mail.
type MailKind string

// The kinds of mails.
const (
	MailQueued MailKind = "queued" // a batch was accepted
	MailReport MailKind = "report" // the report of one closing of a batch
	MailFailed MailKind = "failed" // a batch could not be expanded
	// MailStopped: an admin ended a batch for good, so it will have no report.
	MailStopped MailKind = "stopped"
	MailSafe    MailKind = "safe"   // every copy of everything in a batch was verified: the depositor's copy is not needed
	MailDigest  MailKind = "digest" // what waits for operators
)

// MostMailAddresses is how many addresses a submission or a collection may name.
const MostMailAddresses = 50

// MailAddress returns the address in a text such as Name <address>, without the name. ErrInvalid:
// there is not exactly one.
func MailAddress(text string) (string, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(a.Address, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return "", fmt.Errorf("%w: %q is not a mail address", ErrInvalid, text)
	}
	return a.Address, nil
}

// MailAddresses returns the addresses for mails about a batch: the collection's and then the
// submission's, each once.
func (s Spec) MailAddresses() []string {
	all := s.Notify
	if s.Profile.Mail != nil {
		all = slices.Concat(s.Profile.Mail.To, s.Notify)
	}
	var out []string
	seen := map[string]bool{}
	for _, text := range all {
		address, err := MailAddress(text) // invalid ones were refused on submission
		if key := mailbox(address); err == nil && !seen[key] {
			seen[key] = true
			out = append(out, address)
		}
	}
	return out
}

// mailbox returns the canonical form of an address: its domain in lower case.
func mailbox(address string) string {
	at := strings.LastIndexByte(address, '@')
	return address[:at+1] + strings.ToLower(address[at+1:])
}

// MailTerms limits the addresses that a submission may name, beside the collection's
// ([MailRules.To]) and the submitter's.
type MailTerms struct {
	Token   string   `json:"token"`             // name of the token, whose submissions share the limit
	Own     string   `json:"own,omitempty"`     // the submitter's address; "" if unknown
	Domains []string `json:"domains,omitempty"` // allowed domains of the service, as for [CheckMailDomain]
	Daily   int64    `json:"daily,omitempty"`   // how many other addresses the token's submissions may name in a day (UTC); 0: no limit
}

// Judge counts the other people's addresses that a submission names, each once. *MailRefusedError
// names the addresses that are not allowed: not the submitter's, not in the collection's
// [MailRules], and not in an allowed domain.
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

// mailMatches reports whether a rule of [MailRules.Allow] matches an address. A domain matches only
// plain addresses: quotes before the @ may make a mail server see another domain.
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

// CheckMailDomain returns ErrInvalid unless a text is a domain of mail addresses, such as
// example.org, or *.example.org for all below it.
func CheckMailDomain(text string) error {
	const most = 255
	if len(text) > most || !aMailDomain.MatchString(text) {
		return fmt.Errorf("%w: %q is not a domain; write example.org, or *.example.org for all below it (and its ASCII form, xn--..., when it has one)", ErrInvalid, text)
	}
	return nil
}

// CheckMailRule returns ErrInvalid unless a text can stand in [MailRules.Allow]: an address, or a
// domain.
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

// MailRefusedError says that a submission names addresses to which its submitter may not send mails.
type MailRefusedError struct {
	Collection string   `json:"collection"`
	Addresses  []string `json:"addresses"`
}

// Error masks the addresses, because it is kept longer than they are. It names the rule and what to
// do.
func (e *MailRefusedError) Error() string {
	masked := make([]string, len(e.Addresses))
	for i, address := range e.Addresses {
		masked[i] = MaskAddress(address)
	}
	return e.naming(masked)
}

// InFull is Error with complete addresses, for the submitter's answer only, which is not kept.
func (e *MailRefusedError) InFull() string { return e.naming(e.Addresses) }

func (e *MailRefusedError) naming(addresses []string) string {
	return fmt.Sprintf("mails about collection %s may not go to %s: an address must be the submitter's own, stand in the collection's profile (mail.to or "+
		"mail.allow), or be in a domain that the service allows (HOLDFAST_MAIL_DOMAINS); leave it out, or have an admin allow it",
		e.Collection, strings.Join(addresses, ", "))
}

// MailLimitError says that a token's submissions have named as many other people's addresses as they may in
// a day.
type MailLimitError struct {
	Token string    `json:"token"`
	Daily int64     `json:"daily"`
	Used  int64     `json:"used"`
	Need  int64     `json:"need"`
	Until time.Time `json:"until"` // when the next day begins
}

// Error names the limit, how much of it is used, and what to do.
func (e *MailLimitError) Error() string {
	text := fmt.Sprintf("the submission names %d other people's addresses; submissions of token %s have named %d of the %d allowed in a day",
		e.Need, e.Token, e.Used, e.Daily)
	if e.Need > e.Daily {
		return text + "; name fewer, or have an admin raise HOLDFAST_MAIL_TOKEN_DAILY"
	}
	return text + fmt.Sprintf("; submit without them, or from %s on, or have an admin raise HOLDFAST_MAIL_TOKEN_DAILY", e.Until.UTC().Format(time.RFC3339))
}

// mailID returns the id of a mail, which is the same for the same message to the same address. It
// does not reveal the address.
func (d DeliverySpec) mailID() string {
	about := d.Subject + "_" + string(d.Mail)
	switch d.Mail {
	case MailReport, MailSafe:
		about += fmt.Sprintf("_%d", d.Closing)
	case MailFailed:
		about += fmt.Sprintf("_%d", d.Times)
	case MailDigest:
		about = fmt.Sprintf("%s_%d", d.Mail, d.Period)
	case MailStopped: // once, or twice if a batch is aborted and later deleted
		about += "_" + strings.ToLower(string(d.State))
	case MailQueued: // always once
	}
	sum := sha256.Sum256([]byte(mailbox(d.To)))
	return "msg_" + about + "_" + hex.EncodeToString(sum[:8])
}

// mailTold describes a mail's content for people.
func (d DeliverySpec) mailTold() string {
	switch d.Mail {
	case MailQueued:
		return fmt.Sprintf("batch %s was taken in", d.Called())
	case MailReport:
		return fmt.Sprintf("report %d of batch %s", d.Closing, d.Called())
	case MailFailed:
		return fmt.Sprintf("batch %s could not be read", d.Called())
	case MailStopped:
		return fmt.Sprintf("batch %s was ended by an admin", d.Called())
	case MailSafe:
		return fmt.Sprintf("batch %s is safe", d.Called())
	case MailDigest:
		return "what waits for operators"
	}
	return string(d.Mail)
}

// MaskAddress masks a mail address, but keeps enough to tell addresses apart.
func MaskAddress(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return address
	}
	first := []rune(address[:at])[0]
	return string(first) + "***" + address[at:]
}

// Safety says whether every copy of a batch's objects is verified.
type Safety struct {
	Objects  int64    `json:"objects"`  // versions made by the batch's completed jobs
	Storages []string `json:"storages"` // storages that each version must be in, by the batch's profile
	// Missing counts versions that lack a verified replica in one of Storages. Damaged counts
	// objects with damaged or missing files in some storage. Gone counts objects that were or are
	// being deleted. Leaving counts objects with a requested or approved deletion that has not
	// begun.
	Missing int64 `json:"missing"`
	Damaged int64 `json:"damaged"`
	Gone    int64 `json:"gone"`
	Leaving int64 `json:"leaving"`
	// VerifiedAt is the oldest verification of these replicas.
	VerifiedAt time.Time `json:"verified_at,omitzero"`
}

// Safe reports that the depositor's copy is no longer needed.
func (s Safety) Safe() bool {
	return s.Objects > 0 && len(s.Storages) > 0 && s.Missing == 0 && s.Damaged == 0 && s.Gone == 0 && s.Leaving == 0
}

// Attention is what operators must know beside failures, holds and deletions.
type Attention struct {
	// Undelivered counts messages that are not delivered, or never will be. Messages are some of
	// them.
	Undelivered int64      `json:"undelivered"`
	Messages    []Delivery `json:"messages,omitempty"`
	// Oldest is the batch or job that has waited longest, without spec and results, and with its heading as
	// its name; nil if none waits.
	Oldest *WorkItem `json:"oldest,omitempty"`
}

// DigestRequest says who gets digests for operators, and how often.
type DigestRequest struct {
	To []string `json:"to"`
	// A period begins Offset after each multiple of Every since 1970, UTC.
	Every  time.Duration `json:"every"`
	Offset time.Duration `json:"offset"`
}

// Check returns ErrInvalid for too many or invalid addresses, and for impossible periods.
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

// Period returns the beginning and end of the period at a time.
func (r DigestRequest) Period(at time.Time) (begin, end time.Time) {
	n := at.Add(-r.Offset).UnixMicro() / r.Every.Microseconds()
	begin = time.UnixMicro(n * r.Every.Microseconds()).Add(r.Offset).UTC()
	return begin, begin.Add(r.Every)
}

// Mailing looks up the content of mails.
type Mailing interface {
	// BatchSafety checks the record of every copy of what a batch's completed jobs stored.
	// ErrNotFound: the item is not a batch.
	BatchSafety(ctx context.Context, batchID string) (Safety, error)
	// Attention returns what waits for operators.
	Attention(ctx context.Context) (Attention, error)
}
