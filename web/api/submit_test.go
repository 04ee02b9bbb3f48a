package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/submission"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

const goodManifest = `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
#%prefix | mrt: | http://merritt.cdlib.org/terms#
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:mimeType
http://h.test/a.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 | | a.txt |
#%eof
`

func TestSubmit_URL(t *testing.T) {
	b := newBench(t, mailing("b.test"))
	priority := 3
	r, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{
		URL: "https://h.test/a/b%20c.zip", Type: "Container", ARK: "ark:99999/fk4-ab", LocalIDs: []string{"x", "y"}, Title: "T",
		Digest: &registry.Digest{Algorithm: "SHA-256", Value: strings.Repeat("AB", 32)}, Update: true, Priority: &priority,
		Notify: []string{"a@b.test"},
	}, "key")
	must(t, err)
	if r.Duplicate || r.State != registry.StatePending || r.Type != registry.ContainerType {
		t.Errorf("answer=%+v, want a new pending container", r)
	}
	it, err := b.store.Item(t.Context(), r.BatchID)
	must(t, err)
	var spec registry.Spec
	must(t, json.Unmarshal(it.Spec, &spec))
	if spec.URL != "https://h.test/a/b%20c.zip" || spec.Filename != "b c.zip" || spec.PrimaryID != "ark:/99999/fk4ab" || spec.Mode != registry.Update ||
		spec.Digest.Algorithm != "sha256" || spec.Digest.Value != strings.Repeat("ab", 32) || spec.Submitter != "the depositor" || spec.SizeBytes != -1 {
		t.Errorf("spec=%+v, want it as submitted, in the forms that are kept", spec)
	}
	if it.Priority != 3 || it.Name != "b c.zip" || it.CreatedBy != "the depositor" || it.Collection != "default" {
		t.Errorf("item=%+v, want priority 3, its name, its actor, the default collection", it)
	}
}

// mailing lets depositors have mails sent to a domain, to a few addresses a day.
func mailing(domain string) func(*bench, *api.Options) {
	return func(_ *bench, o *api.Options) {
		o.Mails = submission.MailLimits{Domains: []string{domain}, TokenDaily: 3}
	}
}

// TestSubmit_MailsOfOthers checks that a depositor's token can cause mails only to allowed
// addresses, and to few per day.
func TestSubmit_MailsOfOthers(t *testing.T) {
	b := newBench(t, mailing("b.test"))
	b.pass(25*time.Hour - b.now().Sub(b.now().UTC().Truncate(24*time.Hour))) // so that no midnight is near
	must(t, b.store.AddToken(t.Context(), registry.Token{
		ID: "ann", Hash: signin.Hash("hf_secret_of_ann"), Name: "ann@home.test", Role: registry.RoleDepositor, Collections: []string{"default"},
	}))
	ann := client.New(b.server.URL, "hf_secret_of_ann", client.Options{})
	t.Cleanup(ann.Close)
	n := 0
	submit := func(c *client.Client, to ...string) error {
		n++
		_, err := c.Submit(t.Context(), wire.SubmitRequest{URL: fmt.Sprintf("http://h.test/%d", n), Notify: to}, "")
		return err
	}
	p := problemOf(t, submit(ann, "a@b.test", "eve@evil.test", "ann@home.test"), http.StatusForbidden, wire.CodeMailRefused)
	for _, want := range []string{"collection default", "not go to eve@evil.test: ", "mail.allow", "HOLDFAST_MAIL_DOMAINS", "leave it out"} {
		if !strings.Contains(p.Detail, want) {
			t.Errorf("detail %q lacks %q", p.Detail, want)
		}
	}
	if len(p.Faults) != 1 || p.Faults[0].Location != "body.notify" || p.Faults[0].Found != "eve@evil.test" || !strings.Contains(p.Faults[0].Message, "eve@evil.test") {
		t.Errorf("errors %+v, want the one address", p.Faults)
	}
	if text := b.log.String(); strings.Contains(text, "eve@evil.test") {
		t.Errorf("the log keeps the address: %s", text)
	}
	audit, err := b.store.Feed(t.Context(), registry.FeedQuery{Types: []string{registry.EventRefused}})
	must(t, err)
	if len(audit) != 1 {
		t.Fatalf("%d refusals are events, want 1", len(audit))
	}
	if text := string(audit[0].Data); strings.Contains(text, "eve@evil.test") || !strings.Contains(text, "e***@evil.test") {
		t.Errorf("the event does not keep the address in part: %s", text)
	}
	c, err := b.store.Collection(t.Context(), "default")
	must(t, err)
	c.Profile.Mail, c.Version = &registry.MailRules{Allow: []string{"eve@evil.test"}}, registry.AnyVersion
	must(t, b.store.PutCollection(t.Context(), c, "admin"))
	must(t, submit(ann, "eve@evil.test", "a@b.test", "ann@home.test"))
	p = problemOf(t, submit(ann, "c@b.test", "d@b.test"), http.StatusTooManyRequests, wire.CodeMailLimit)
	for _, want := range []string{"names 2 other people", "token ann@home.test", "2 of the 3", "submit without them", "HOLDFAST_MAIL_TOKEN_DAILY"} {
		if !strings.Contains(p.Detail, want) {
			t.Errorf("detail %q lacks %q", p.Detail, want)
		}
	}
	answer, _ := b.send(t, http.MethodPost, "/api/v1/batches", `{"url":"http://h.test/x","notify":["c@b.test","d@b.test"]}`, "Authorization", "Bearer hf_secret_of_ann")
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 48*60*60 {
		t.Errorf("Retry-After %q (%v), want the seconds until midnight", answer.Header.Get("Retry-After"), err)
	}
	must(t, submit(ann, "ann@home.test"))
	must(t, submit(b.as(t, registry.RoleOperator).Client, "c@b.test", "d@b.test"))
	problemOf(t, submit(b.as(t, registry.RoleOperator).Client, "x@evil.test"), http.StatusForbidden, wire.CodeMailRefused)
	must(t, submit(b.as(t, registry.RoleAdmin).Client, "a@anywhere.test", "b@anywhere.test", "c@anywhere.test", "d@anywhere.test")) // who could allow it
	_, err = ann.PrepareGraph(t.Context(), wire.GraphRequest{Nodes: []wire.NodeRequest{{
		Key: "a", SubmitRequest: wire.SubmitRequest{URL: "http://h.test/g", Notify: []string{"x@evil.test"}},
	}}}, "")
	if p := problemOf(t, err, http.StatusForbidden, wire.CodeMailRefused); !strings.Contains(p.Detail, `node "a"`) {
		t.Errorf("detail %q does not name the node", p.Detail)
	}
	b.pass(24 * time.Hour)
	must(t, submit(ann, "c@b.test", "d@b.test"))
}

func TestSubmit_Idempotent(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	first, err := c.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "k1")
	must(t, err)
	again, err := c.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "k1")
	must(t, err)
	if again.BatchID != first.BatchID || !again.Duplicate {
		t.Errorf("repeat=%+v, want a duplicate of %s", again, first.BatchID)
	}
	_, err = c.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/b"}, "k1")
	problemOf(t, err, http.StatusConflict, wire.CodeIdempotency)
	if !errors.Is(err, registry.ErrIdempotencyConflict) {
		t.Errorf("error=%v, want ErrIdempotencyConflict", err)
	}
}

// TestUnknownNames: each operation that refuses an unknown field or parameter names the nearest one that
// it knows, or all.
func TestUnknownNames(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ method, path, body, location, says string }{
		{http.MethodPost, "/api/v1/batches", `{"url":"http://h/a","titel":"Maps"}`, "body.titel", "unknown; did you mean title?"},
		{http.MethodPost, "/api/v1/batches", `{"url":"http://h/a","digest":{"algoritm":"md5"}}`, "body.digest.algoritm", "did you mean algorithm?"},
		{http.MethodPost, "/api/v1/batches", `{"url":"http://h/a","requires":[{"item":"x","settlement":true}]}`, "body.requires[0].settlement", "known are "},
		{http.MethodPost, "/api/v1/batches", `{"url":"http://h/a","":1}`, "body.", "known are ark, "},
		{http.MethodPost, "/api/v1/batches", `{"url":"http://h/a","nothing_like_this":1}`, "body.nothing_like_this", "known are ark, collection, "},
		{http.MethodPut, "/api/v1/collections/maps", `{"ownr":"x"}`, "body.ownr", "did you mean owner?"},
		{http.MethodGet, "/api/v1/items?limt=3", "", "query.limt", "did you mean limit?"},
	} {
		answer, text := b.send(t, c.method, c.path, c.body)
		p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		if !slices.ContainsFunc(p.Faults, func(f wire.Fault) bool { return f.Location == c.location && strings.Contains(f.Message, c.says) }) {
			t.Errorf("%s of %s %s: %+v, want %q", c.location, c.method, c.path, p.Faults, c.says)
		}
	}
}

// TestSubmit_InvalidInput checks that all faults are reported at once, and that nothing is
// submitted.
func TestSubmit_InvalidInput(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name, body string
		status     int
		code       wire.Code
		locations  string
	}{
		{"nothing", `{}`, 422, wire.CodeInvalid, "body.url"},
		{"both", `{"url":"http://h/a","upload_id":"x"}`, 422, wire.CodeInvalid, "body.upload_id"},
		{"no body", ``, 400, wire.CodeBadRequest, ""},
		{"no JSON", `{"url":`, 400, wire.CodeBadRequest, "body"},
		{"another type of JSON", `[1]`, 422, wire.CodeInvalid, "body"},
		{"a wrong type", `{"url":7}`, 422, wire.CodeInvalid, "body.url"},
		{"an unknown field", `{"url":"http://h/a","prio":7}`, 422, wire.CodeInvalid, "body.prio"},
		{"no scheme", `{"url":"h/a"}`, 422, wire.CodeInvalid, "body.url"},
		{"a file", `{"url":"file:///etc/passwd"}`, 422, wire.CodeInvalid, "body.url"},
		{"an upload as URL", `{"url":"upload:1234"}`, 422, wire.CodeInvalid, "body.url"},
		{"ftp", `{"url":"ftp://h/a"}`, 422, wire.CodeInvalid, "body.url"},
		{"a password in the address", `{"url":"https://ann:pw@h/a"}`, 422, wire.CodeInvalid, "body.url"},
		{"a name in the address", `{"url":"s3://ann@bucket/a"}`, 422, wire.CodeInvalid, "body.url"},
		{"no object in the bucket", `{"url":"s3://bucket/"}`, 422, wire.CodeInvalid, "body.url"},
		{"an address as a bucket", `{"url":"s3://10.0.0.1/a"}`, 422, wire.CodeInvalid, "body.url"},
		{"no host", `{"url":"http:///a"}`, 422, wire.CodeInvalid, "body.url"},
		{"a broken URL", `{"url":"http://h/%zz"}`, 422, wire.CodeInvalid, "body.url"},
		{"a space", `{"url":"http://h/a b"}`, 422, wire.CodeInvalid, "body.url"},
		{"a type", `{"url":"http://h/a","type":"tarball"}`, 422, wire.CodeInvalid, "body.type"},
		{"an ARK", `{"url":"http://h/a","ark":"doi:10.1/x"}`, 422, wire.CodeInvalid, "body.ark"},
		{"a part", `{"url":"http://h/a","ark":"ark:/99999/fk4/page1"}`, 422, wire.CodeInvalid, "body.ark"},
		{"an algorithm", `{"url":"http://h/a","digest":{"algorithm":"md4","value":"00"}}`, 422, wire.CodeInvalid, "body.digest.algorithm"},
		{"a value", `{"url":"http://h/a","digest":{"algorithm":"md5","value":"00"}}`, 422, wire.CodeInvalid, "body.digest.value"},
		{"half a digest", `{"url":"http://h/a","digest":{"algorithm":"md5"}}`, 422, wire.CodeInvalid, "body.digest"},
		{"mail", `{"url":"http://h/a","notify":["nobody"]}`, 422, wire.CodeInvalid, "body.notify[0]"},
		{"local ids", `{"url":"http://h/a","local_ids":["a"," ","a"]}`, 422, wire.CodeInvalid, "body.local_ids[1] body.local_ids[2]"},
		{"control characters", `{"url":"http://h/a","title":"a\u0000b","creator":"\u001b[31m"}`, 422, wire.CodeInvalid, "body.title body.creator"},
		{"a path as name", `{"url":"http://h/a","filename":"../x"}`, 422, wire.CodeInvalid, "body.filename"},
		{"a priority", `{"url":"http://h/a","priority":-1}`, 422, wire.CodeInvalid, "body.priority"},
		{"a huge priority", `{"url":"http://h/a","priority":1e30}`, 422, wire.CodeInvalid, ""},
		{"several", `{"url":"x","type":"y","ark":"z"}`, 422, wire.CodeInvalid, "body.type body.url body.ark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, text := b.send(t, http.MethodPost, "/api/v1/batches", c.body)
			p := wantProblem(t, answer, text, c.status, c.code)
			var got []string
			for _, f := range p.Faults {
				got = append(got, f.Location)
				if f.Message == "" {
					t.Errorf("error %+v has no message", f)
				}
			}
			if all := strings.Join(got, " "); c.locations != "" && all != c.locations {
				t.Errorf("errors at %q, want %q: %s", all, c.locations, text)
			}
		})
	}
	page, err := b.store.Items(t.Context(), registry.ItemQuery{})
	if must(t, err); len(page.Rows) != 0 {
		t.Errorf("%d items were made, want none", len(page.Rows))
	}
}

func TestSubmit_UnknownCollectionAndUpload(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	_, err := c.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a", Collection: "nope"}, "")
	if p := problemOf(t, err, http.StatusNotFound, wire.CodeNotFound); !strings.Contains(p.Detail, `"nope"`) || !strings.Contains(p.Detail, "default") {
		t.Errorf("detail=%q, want the name and what there is", p.Detail)
	}
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: "nope"}, "")
	if p := problemOf(t, err, http.StatusNotFound, wire.CodeNotFound); !strings.Contains(p.Detail, `"nope"`) {
		t.Errorf("detail=%q, want the id", p.Detail)
	}
}

func TestSubmit_UploadIsRecognisedByContent(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name, content string
		given         string
		want          registry.PayloadType
	}{
		{"x.bin", "just text", "", registry.FileType},
		{"x.txt", goodManifest, "auto", registry.ObjectManifest},
		{"x.zip", "just text", "file", registry.FileType},
		{"y.checkm", goodManifest, "file", registry.FileType},
	} {
		u := b.upload(t, c.name, c.content)
		r, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Type: c.given}, "")
		must(t, err)
		it, err := b.store.Item(t.Context(), r.BatchID)
		must(t, err)
		var spec registry.Spec
		must(t, json.Unmarshal(it.Spec, &spec))
		if r.Type != c.want || spec.Type != c.want || spec.Filename != c.name || spec.SizeBytes != int64(len(c.content)) || spec.URL != registry.UploadURL(u.ID) {
			t.Errorf("%s: answer=%+v spec=%+v, want type %s", c.name, r, spec, c.want)
		}
	}
}

// TestSubmit_BadManifestIsRefusedWithAllFaults checks that an invalid manifest is refused with all
// its faults and removed, without a trace of a batch.
func TestSubmit_BadManifestIsRefusedWithAllFaults(t *testing.T) {
	b := newBench(t)
	bad := strings.Replace(goodManifest, "http://h.test/a.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 ",
		"nowhere | md5 | 5d41 | five ", 1)
	for _, given := range []string{"", "object-manifest"} {
		u := b.upload(t, "bad.checkm", bad)
		_, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Type: given}, "")
		p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeContentInvalid)
		if len(p.Faults) < 3 {
			t.Fatalf("faults=%+v, want the address, the digest and the size", p.Faults)
		}
		for _, f := range p.Faults {
			if f.Line != 6 || f.Rule == "" || f.Fix == "" || f.Message == "" || f.Severity == "" {
				t.Errorf("fault=%+v, want line 6 with rule and fix", f)
			}
		}
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
	if page, err := b.store.Items(t.Context(), registry.ItemQuery{}); err != nil || len(page.Rows) > 0 {
		t.Errorf("items=%v (%v), want none", page.Rows, err)
	}
}

// TestSubmit_StopsOnBadRow checks that a collection that stops on a bad row refuses the upload with
// all bad rows, and that another collection accepts it.
func TestSubmit_StopsOnBadRow(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleAdmin)
	must(t, c.PutCollection(t.Context(), registry.Collection{Mnemonic: "whole", Profile: registry.Profile{
		Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}, StopOnBadRow: true,
	}}))
	rows := "#%checkm_0.7\n#%profile | " + checkm.FileBatch.ProfileURI() + "\nftp://h.test/a | | | | | a\nhttp://h.test/b | | | | | b\n" +
		"http://h.test/c | md5 | 12 | | | c\n#%eof\n"
	u := b.upload(t, "batch.checkm", rows)
	_, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Collection: "whole"}, "")
	p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeContentInvalid)
	var lines []int
	for _, f := range p.Faults {
		if f.Severity == string(checkm.Error) {
			lines = append(lines, f.Line)
		}
	}
	if !slices.Equal(lines, []int{3, 5}) || !strings.Contains(p.Detail, "only if all of it is valid") {
		t.Errorf("detail=%q, errors in lines %v, want those of lines 3 and 5", p.Detail, lines)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
	if page, err := b.store.Items(t.Context(), registry.ItemQuery{}); err != nil || len(page.Rows) > 0 {
		t.Errorf("items=%v (%v), want none", page.Rows, err)
	}
	u = b.upload(t, "batch.checkm", rows)
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID}, "")
	must(t, err)
}

// TestSubmit_RefusalKeepsWhatABatchHas checks that a refused submission does not remove an upload
// that another batch uses.
func TestSubmit_RefusalKeepsWhatABatchHas(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	u := b.upload(t, "a.txt", "not a manifest")
	_, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID}, "")
	must(t, err)
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Type: "object-manifest"}, "")
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeContentInvalid)
	if left := b.staged(t); len(left) != 1 || left[0] != source.UploadKey(u.ID) {
		t.Errorf("staging=%v, want the batch's upload", left)
	}
}

// TestSubmit_DuplicateContent checks that the same bytes give the same batch, and are not stored
// twice.
func TestSubmit_DuplicateContent(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	first := b.upload(t, "a.txt", "same")
	one, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: first.ID}, "")
	must(t, err)
	second := b.upload(t, "a.txt", "same")
	two, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: second.ID}, "")
	must(t, err)
	if !two.Duplicate || two.BatchID != one.BatchID {
		t.Errorf("answer=%+v, want a duplicate of %s", two, one.BatchID)
	}
	if left := b.staged(t); len(left) != 1 || left[0] != source.UploadKey(first.ID) {
		t.Errorf("staging=%v, want the first upload alone", left)
	}
	again, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: first.ID}, "")
	must(t, err)
	if !again.Duplicate || again.BatchID != one.BatchID || len(b.staged(t)) != 1 {
		t.Errorf("repeat=%+v staging=%v, want the same batch and its upload kept", again, b.staged(t))
	}
	forced, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: b.upload(t, "a.txt", "same").ID, Force: true}, "")
	must(t, err)
	if forced.Duplicate || len(b.staged(t)) != 2 {
		t.Errorf("forced=%+v staging=%v, want a batch and an upload of its own", forced, b.staged(t))
	}
}

// TestSubmit_RepeatAfterTheUploadIsUsedUp checks that a repeat gets the lost answer even after the
// batch has completed and its upload is gone.
func TestSubmit_RepeatAfterTheUploadIsUsedUp(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	u := b.upload(t, "a.txt", "gone soon")
	one, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Title: "T"}, "key")
	must(t, err)
	must(t, b.staging.Delete(t.Context(), source.UploadKey(u.ID)))
	again, err := c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Title: "T"}, "key")
	must(t, err)
	if !again.Duplicate || again.BatchID != one.BatchID || again.Type != registry.FileType {
		t.Errorf("repeat=%+v, want %s again", again, one.BatchID)
	}
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Title: "another"}, "")
	problemOf(t, err, http.StatusConflict, wire.CodeConflict)
	lost := b.upload(t, "b.txt", "lost")
	must(t, b.staging.Delete(t.Context(), source.UploadKey(lost.ID)))
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: lost.ID}, "")
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
}

func TestSubmit_WrongDigestOfUpload(t *testing.T) {
	b := newBench(t)
	u := b.upload(t, "a.txt", "bytes")
	_, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{
		UploadID: u.ID, Digest: &registry.Digest{Algorithm: "sha256", Value: strings.Repeat("0", 64)},
	}, "")
	p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeDigestMismatch)
	if len(p.Faults) != 1 || p.Faults[0].Found != u.Digest.Value {
		t.Errorf("faults=%+v, want expected and found", p.Faults)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
}

// TestSubmit_RealManifests checks that real batch manifests of Merritt are accepted unchanged.
func TestSubmit_RealManifests(t *testing.T) {
	folder := filepath.Join(sharedCases(t), "merritt", "sampleFiles")
	b := newBench(t)
	for name, want := range map[string]registry.PayloadType{
		"4blocks.checkm": registry.ObjectManifest, "call911.checkm": registry.ObjectManifest,
		"sampleBatchOfManifests.checkm": registry.BatchManifest, "sampleBatchOfContainers.checkm": registry.ContainerBatch,
		"sampleBatchOfFiles.checkm": registry.SingleFileBatch,
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		must(t, err)
		u := b.upload(t, name, string(text))
		r, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID}, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r.Type != want {
			t.Errorf("%s: type=%s, want %s", name, r.Type, want)
		}
	}
}

// sharedCases is the folder of cases beside the module, or skips.
func sharedCases(t *testing.T) string {
	t.Helper()
	at, err := os.Getwd()
	must(t, err)
	for ; at != filepath.Dir(at); at = filepath.Dir(at) {
		cases := filepath.Join(at, "shared", "cases")
		if _, err := os.Stat(cases); err == nil {
			return cases
		}
	}
	t.Skip("shared/cases is not beside this checkout")
	return ""
}

// TestSubmit_MistypedARKOfARow checks a manifest with a mistyped ARK: a collection that accepts all
// rows or none refuses it, and so does a check without a submission. An ARK of another institution,
// one letter from our NAAN, is refused only if its object is known under our NAAN.
func TestSubmit_MistypedARKOfARow(t *testing.T) {
	template, err := noid.ParseTemplate("99999/fk4{.reeeeeeeek}")
	must(t, err)
	b := newBench(t, func(_ *bench, o *api.Options) { o.Template = template })
	c := b.as(t, registry.RoleAdmin)
	must(t, c.PutCollection(t.Context(), registry.Collection{Mnemonic: "whole", Profile: registry.Profile{
		Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}, StopOnBadRow: true,
	}}))
	known := "99999/fk4bcdfghjk" + string(noid.CheckChar("99999/fk4bcdfghjk"))
	b.preserve(t, "ark:/"+known, map[string]string{"producer/a": "alpha"})
	unknown := "99999/fk4bcdfghjm" + string(noid.CheckChar("99999/fk4bcdfghjm"))
	slips := []string{"ark:/" + known[:10] + known[11:], "ark:/" + known[:10] + "0" + known[10:], "ark:/99999/fk5" + known[9:], "ark:/99990/" + known[6:]}
	text := "#%checkm_0.7\n#%profile | " + checkm.FileBatch.ProfileURI() + "\n"
	for i, ark := range slices.Concat(slips, []string{"ark:/" + known, "ark:/99990/" + unknown[6:], "ark:/99999/fk4one"}) {
		text += fmt.Sprintf("http://h.test/%d | | | | | %d | %s\n", i, i, ark)
	}
	text += "#%eof\n"
	u := b.upload(t, "batch.checkm", text)
	_, answer := b.send(t, http.MethodPost, "/api/v1/check?collection=whole&upload_id="+u.ID, "")
	var judged intake.Report
	must(t, json.Unmarshal([]byte(answer), &judged))
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Collection: "whole"}, "")
	p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeContentInvalid)
	var lines []int
	for _, f := range p.Faults {
		if f.Severity == string(checkm.Error) {
			lines = append(lines, f.Line)
			if !strings.Contains(f.Message+f.Expected, known) {
				t.Errorf("line %d: %+v, without %s", f.Line, f, known)
			}
		}
	}
	if !slices.Equal(lines, []int{3, 4, 5, 6}) || judged.RowsRefused != 4 {
		t.Errorf("errors in lines %v, want those of lines 3 to 6; the judgement refuses %d rows", lines, judged.RowsRefused)
	}
}

// TestSubmit_MistypedARK checks that a supplied ARK with a wrong check character is refused with
// the probable correction, unless an object has that ARK.
func TestSubmit_MistypedARK(t *testing.T) {
	template, err := noid.ParseTemplate("99999/fk4{.reeeeeeeek}")
	must(t, err)
	b := newBench(t, func(_ *bench, o *api.Options) { o.Template = template })
	meant, wrong, old := "ark:/99999/fk4bcdfghjk", "ark:/99999/fk4bcdfghkj", "ark:/99999/fk4bcdfghjzz"
	meant += string(noid.CheckChar("99999/fk4bcdfghjk"))
	wrong += meant[len(meant)-1:]
	b.preserve(t, old, map[string]string{"producer/a": "alpha"})
	c := b.as(t, registry.RoleDepositor)
	_, err = c.Submit(t.Context(), wire.SubmitRequest{URL: "https://example.org/a", Type: "file", ARK: wrong}, "")
	p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
	if len(p.Faults) != 1 || p.Faults[0].Location != "body.ark" || !strings.Contains(p.Faults[0].Message, meant) {
		t.Errorf("errors %+v, want %s named", p.Faults, meant)
	}
	for _, ark := range []string{meant, old, "ark:/99999/fk4one", "ark:/13030/xf93gt2r", ""} {
		if _, err := c.Submit(t.Context(), wire.SubmitRequest{URL: "https://example.org/" + ark, Type: "file", ARK: ark}, ""); err != nil {
			t.Errorf("%q: %v", ark, err)
		}
	}
}
