package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
)

// bag is what must be known of all files before the first byte of a bag can be written.
type bag struct {
	payload   bagit.Oxum
	manifests []manifest
	tags      []registry.File // Holdfast's system files
}

// manifest is the payload manifest of one algorithm. Its text is generated each time it is written.
type manifest struct {
	algorithm string
	size      int64
	digests   map[string]string // of the manifest itself
}

var errNoDigest = errors.New("some files have no recorded sha256, and some no sha512")

// survey reads the inventory once.
func (p *Package) survey(ctx context.Context) error {
	algorithms := []string{"sha256", "sha512"}
	digesters := map[string]*fixity.Digester{}
	for _, algorithm := range algorithms {
		d, err := fixity.NewDigester(algorithms...)
		if err != nil {
			return err
		}
		digesters[algorithm] = d
	}
	p.bag = &bag{}
	for f, err := range p.files(ctx) {
		if err != nil {
			return err
		}
		name, payload := payloadName(f.Path)
		if payload {
			name = bagit.PayloadDir + "/" + name
		}
		if err := bagit.CheckName(name); err != nil {
			return fmt.Errorf("%s: %w: %w", f.Path, ErrName, err)
		}
		algorithms = slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return f.Digests[a] == "" })
		if !payload {
			p.bag.tags = append(p.bag.tags, f)
			continue
		}
		p.bag.payload.Files++
		p.bag.payload.Bytes += f.SizeBytes
		for _, algorithm := range algorithms {
			if _, err := digesters[algorithm].Write(bagit.ManifestLine(f.Digests[algorithm], name)); err != nil {
				return err
			}
		}
	}
	if len(algorithms) == 0 {
		return errNoDigest
	}
	for _, algorithm := range algorithms {
		d := digesters[algorithm]
		sums := d.Sums()
		for other := range sums {
			if !slices.Contains(algorithms, other) {
				delete(sums, other)
			}
		}
		p.bag.manifests = append(p.bag.manifests, manifest{algorithm: algorithm, size: d.Size(), digests: sums})
	}
	return nil
}

// bagEntries yields bagit.txt, the payload, Holdfast's system files, bag-info.txt, the manifests
// and the tag manifests.
func (p *Package) bagEntries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var tags []Entry // entries of the tag manifests
		tag := func(e Entry, err error) bool {
			tags = append(tags, e)
			return yield(e, err)
		}
		if !tag(p.textEntry(bagit.DeclarationFile, bagit.DeclarationText())) {
			return
		}
		if p.bag.payload.Files == 0 && !yield(Entry{Name: bagit.PayloadDir + "/"}, nil) { // every bag has this folder
			return
		}
		for f, err := range p.files(ctx) {
			name, payload := payloadName(f.Path)
			if err == nil && !payload {
				continue // survey kept them
			}
			if !yield(p.storedEntry(bagit.PayloadDir+"/"+name, f), err) {
				return
			}
		}
		for _, f := range p.bag.tags {
			if !tag(p.storedEntry(f.Path, f), nil) {
				return
			}
		}
		info, err := bagit.FormatInfo(p.info())
		if err == nil {
			var e Entry
			if e, err = p.textEntry(bagit.InfoFile, info); err == nil && !tag(e, nil) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, m := range p.bag.manifests {
			if !tag(p.manifestEntry(m), nil) {
				return
			}
		}
		slices.SortFunc(tags, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		for _, m := range p.bag.manifests {
			var text []byte
			for _, e := range tags {
				text = append(text, bagit.ManifestLine(e.Digests[m.algorithm], e.Name)...)
			}
			if !yield(p.textEntry("tagmanifest-"+m.algorithm+".txt", text)) {
				return
			}
		}
	}
}

// textEntry returns a small generated file.
func (p *Package) textEntry(name string, content []byte) (Entry, error) {
	var algorithms []string
	if p.bag == nil {
		algorithms = []string{"sha256"}
	} else {
		for _, m := range p.bag.manifests {
			algorithms = append(algorithms, m.algorithm)
		}
	}
	digester, err := fixity.NewDigester(algorithms...)
	if err != nil {
		return Entry{}, err
	}
	if _, err := digester.Write(content); err != nil {
		return Entry{}, err
	}
	return Entry{
		Name: name, Size: int64(len(content)), Digests: digester.Sums(),
		write: func(_ context.Context, w io.Writer, offset int64) error {
			_, err := io.Copy(w, bytes.NewReader(content[offset:]))
			return err
		},
	}, nil
}

// manifestEntry returns a payload manifest. It is generated while it is written, which reads the
// inventory again.
func (p *Package) manifestEntry(m manifest) Entry {
	write := func(ctx context.Context, w io.Writer, offset int64) error {
		out := &skipWriter{w: w, skip: offset}
		for f, err := range p.files(ctx) {
			if err != nil {
				return err
			}
			name, payload := payloadName(f.Path)
			if !payload {
				continue
			}
			if _, err := out.Write(bagit.ManifestLine(f.Digests[m.algorithm], bagit.PayloadDir+"/"+name)); err != nil {
				return err
			}
		}
		return out.flush()
	}
	return Entry{Name: "manifest-" + m.algorithm + ".txt", Size: m.size, Digests: m.digests, write: write}
}

// info returns the tags of bag-info.txt.
func (p *Package) info() []bagit.Tag {
	o := p.object
	info := []bagit.Tag{
		{Label: "Bag-Software-Agent", Value: p.opts.Agent},
		{Label: bagit.BaggingDateLabel, Value: p.opts.At.UTC().Format(time.DateOnly)},
		{Label: "External-Identifier", Value: o.ARK},
	}
	for _, id := range o.LocalIDs {
		info = append(info, bagit.Tag{Label: "Internal-Sender-Identifier", Value: oneLine(id)})
	}
	if o.Title != "" {
		info = append(info, bagit.Tag{Label: "External-Description", Value: oneLine(o.Title)})
	}
	info = append(info, termsTags(o.Terms)...)
	return append(info, bagit.Tag{Label: "Object-Version", Value: strconv.Itoa(p.version)},
		bagit.Tag{Label: bagit.PayloadOxumLabel, Value: p.bag.payload.String()})
}

// termsTags returns the rights, preservation level and embargo in force, with labels of our own: BagIt
// reserves none for them.
func termsTags(t registry.Terms) (tags []bagit.Tag) {
	add := func(label, value string) {
		if value != "" {
			tags = append(tags, bagit.Tag{Label: label, Value: oneLine(value)})
		}
	}
	if r := t.Rights; r != nil {
		add("Rights-Basis", string(r.Basis))
		add("Rights-Status", r.Status)
		add("Rights-Jurisdiction", r.Jurisdiction)
		add("Rights-Statement", r.Statement)
		add("Rights-URI", r.URI)
	}
	add("Preservation-Level", t.PreservationLevel)
	add("Embargo-Until", t.EmbargoUntil)
	add("Embargo-Reason", t.EmbargoReason)
	return tags
}

// oneLine returns text as a valid value of a tag.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}

// skipWriter skips the first bytes written to it, and buffers small writes.
type skipWriter struct {
	w    io.Writer
	skip int64
	buf  []byte
}

// Write implements io.Writer. Bytes that it has accepted may still need a flush.
func (b *skipWriter) Write(p []byte) (int, error) {
	n := len(p)
	left := min(b.skip, int64(n))
	b.skip -= left
	b.buf = append(b.buf, p[left:]...)
	if len(b.buf) >= 64<<10 {
		return n, b.flush()
	}
	return n, nil
}

func (b *skipWriter) flush() error {
	_, err := b.w.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}
