package bagit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
)

// Errors of a Writer.
var (
	// ErrName is returned for a name that a bag cannot have, has already, or reserves.
	ErrName = errors.New("name cannot be used")
	// ErrTag is returned for a label or value that bag-info.txt cannot hold.
	ErrTag = errors.New("tag cannot be written")
	// ErrAlgorithm is returned for an algorithm that is not known.
	ErrAlgorithm = errors.New("algorithm is not known")
)

// Target is where a Writer puts the files of a bag. FolderTarget and TarTarget give the two there are.
type Target interface {
	// Mkdir makes a folder, name relative to the bag. It is called once, for data.
	Mkdir(name string) error
	// Create starts a file that must not exist; size is -1 if not known. The file is complete when Close of it has
	// returned nil, and not before. The next file is started after that.
	Create(name string, size int64) (io.WriteCloser, error)
	// Close ends the bag.
	Close() error
}

// WriterOptions say what a Writer writes.
type WriterOptions struct {
	// Algorithms of the manifests; none is sha512, as section 2.4 asks.
	Algorithms []string
	// Info becomes bag-info.txt, in this order, with Payload-Oxum after it. It must not have a Payload-Oxum itself.
	Info []Tag
}

// Writer writes a bag of BagIt 1.0 as a stream: bagit.txt first, then what is added, at last bag-info.txt and the
// manifests. It keeps names and digests only. It is not for concurrent use. ErrName and a known digest that is none
// leave it as it was. After any other error nothing more can be added, for a file may be there in part: what was
// written is not a bag and must be thrown away.
type Writer struct {
	target   Target
	algs     algSet
	info     []Tag
	bufs     sync.Pool
	payload  []written
	tags     []written
	taken    map[string]bool // files
	folders  map[string]bool
	oxum     Oxum
	broken   error
	finished bool
}

// written is a file that is in the bag.
type written struct {
	name    string
	digests []byte // of all algorithms, in their order
}

// NewWriter starts a bag: it checks the options and writes bagit.txt and the data folder. It returns ErrAlgorithm,
// ErrTag, or what the target does.
func NewWriter(ctx context.Context, target Target, opts WriterOptions) (*Writer, error) {
	w := &Writer{target: target, info: slices.Clone(opts.Info), taken: map[string]bool{}, folders: map[string]bool{}}
	for _, name := range opts.Algorithms {
		a, ok := lookupAlgorithm(name)
		if !ok {
			return nil, fmt.Errorf("write bag with %q: %w", name, ErrAlgorithm)
		}
		w.algs |= 1 << a
	}
	if w.algs == 0 {
		w.algs = 1 << algSHA512
	}
	for _, t := range w.info {
		if err := checkTag(t); err != nil {
			return nil, fmt.Errorf("write bag: %w", err)
		}
	}
	declaration := versionLabel + ": " + Version10.String() + "\n" + encodingLabel + ": UTF-8\n"
	if err := w.writeTag(ctx, DeclarationFile, []byte(declaration)); err != nil {
		return nil, err
	}
	if err := target.Mkdir(PayloadDir); err != nil {
		return nil, fmt.Errorf("write bag: %w", err)
	}
	return w, nil
}

// Add writes a payload file; name is its path below data/. size is -1 if not known, which a tar does not take. known
// has digests that the content must have, in hexadecimal by algorithm: they are compared with what was written,
// whether the manifests use them or not. The errors are ErrName, ErrDigest, ErrSize, ErrFinished, those of r and
// of the target, and the cause of ctx.
func (w *Writer) Add(ctx context.Context, name string, size int64, r io.Reader, known map[string]string) error {
	if name == "" || strings.HasPrefix(name, "/") {
		return fmt.Errorf("write %q: %w", name, ErrName)
	}
	file, n, err := w.write(ctx, payloadPrefix+name, size, r, known)
	if err != nil {
		return err
	}
	w.payload = append(w.payload, file)
	w.oxum.Files++
	w.oxum.Bytes += n
	return nil
}

// AddTagFile writes a tag file of the caller's own, which the tag manifests will list; name is its path in the bag.
// Names of section 2 and below data/ are ErrName; the other errors are those of Add.
func (w *Writer) AddTagFile(ctx context.Context, name string, size int64, r io.Reader, known map[string]string) error {
	kind, _ := manifestName(name)
	top, _, _ := strings.Cut(name, "/")
	if kind != 0 || top == PayloadDir || name == DeclarationFile || name == InfoFile || name == FetchFile {
		return fmt.Errorf("write %q: %w", name, ErrName)
	}
	file, _, err := w.write(ctx, name, size, r, known)
	if err == nil {
		w.tags = append(w.tags, file)
	}
	return err
}

// Close writes bag-info.txt, the manifests and the tag manifests and ends the bag. When it returns nil the bag is
// complete on the target. It returns the error of an earlier call that failed, and ErrFinished the second time.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.usable(); err != nil {
		return fmt.Errorf("close bag: %w", err)
	}
	info := append(slices.Clone(w.info), Tag{Label: PayloadOxumLabel, Value: w.oxum.String()})
	if err := w.writeTag(ctx, InfoFile, formatInfo(info)); err != nil {
		return err
	}
	for _, a := range w.algs.list() {
		if err := w.writeTag(ctx, "manifest-"+a.String()+".txt", w.format(w.payload, a)); err != nil {
			return err
		}
	}
	listed := w.tags // tag manifests do not list each other
	for _, a := range w.algs.list() {
		if err := w.writeTag(ctx, "tagmanifest-"+a.String()+".txt", w.format(listed, a)); err != nil {
			return err
		}
	}
	w.finished = true
	if err := w.target.Close(); err != nil {
		return fmt.Errorf("close bag: %w", err)
	}
	return nil
}

func (w *Writer) usable() error {
	if w.finished {
		return ErrFinished
	}
	return w.broken
}

func (w *Writer) writeTag(ctx context.Context, name string, content []byte) error {
	file, _, err := w.write(ctx, name, int64(len(content)), bytes.NewReader(content), nil)
	if err == nil {
		w.tags = append(w.tags, file)
	}
	return err
}

// write writes one file and takes its digests in the same pass.
func (w *Writer) write(ctx context.Context, name string, size int64, r io.Reader, known map[string]string) (written, int64, error) {
	if err := w.usable(); err != nil {
		return written{}, 0, fmt.Errorf("write %q: %w", name, err)
	}
	if err := w.checkName(name); err != nil {
		return written{}, 0, fmt.Errorf("write %q: %w", name, err)
	}
	sums, check, err := decodeDigests(known)
	if err != nil {
		return written{}, 0, fmt.Errorf("write %q: %w", name, err)
	}
	file, n, err := w.copy(ctx, name, size, r, sums, check)
	if err != nil {
		w.broken = fmt.Errorf("write %q: %w", name, err)
		return written{}, 0, w.broken
	}
	w.taken[name] = true
	for dir := path.Dir(name); dir != "." && !w.folders[dir]; dir = path.Dir(dir) {
		w.folders[dir] = true
	}
	return file, n, nil
}

func (w *Writer) copy(
	ctx context.Context, name string, size int64, r io.Reader, sums [algCount][]byte, check algSet,
) (written, int64, error) {
	out, err := w.target.Create(name, size)
	if err != nil {
		return written{}, 0, err
	}
	digests, n, err := takeDigests(ctx, io.TeeReader(r, out), w.algs|check, &w.bufs)
	if err == nil && size >= 0 && n != size {
		err = fmt.Errorf("%d octets, not %d: %w", n, size, ErrSize)
	}
	kept := make([]byte, 0, len(digests))
	for _, a := range (w.algs | check).list() {
		at := (w.algs | check).offset(a)
		sum := digests[min(at, len(digests)):min(at+a.size(), len(digests))]
		if err == nil && check.has(a) && !bytes.Equal(sum, sums[a]) {
			err = fmt.Errorf("%s is %x, not %x: %w", a, sum, sums[a], ErrDigest)
		}
		if w.algs.has(a) {
			kept = append(kept, sum...)
		}
	}
	// Close also after an error, so that nothing stays open; the first error counts.
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return written{name: name, digests: kept}, n, err
}

func (w *Writer) checkName(name string) error {
	why := unsafeReference(name)
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			why = "empty part"
		}
	}
	if w.taken[name] || w.folders[name] {
		why = "already in the bag"
	}
	for dir := path.Dir(name); why == "" && dir != "."; dir = path.Dir(dir) {
		if w.taken[dir] {
			why = dir + " is a file"
		}
	}
	if why == "" && printable(name) != name {
		why = "not UTF-8"
	}
	if why != "" {
		return fmt.Errorf("%s: %w", why, ErrName)
	}
	return nil
}

// format gives the manifest of the files with one algorithm, sorted by name.
func (w *Writer) format(files []written, a algorithm) []byte {
	files = slices.Clone(files)
	slices.SortFunc(files, func(x, y written) int { return strings.Compare(x.name, y.name) })
	at := w.algs.offset(a)
	var out []byte
	for _, f := range files {
		out = hex.AppendEncode(out, f.digests[at:at+a.size()])
		out = append(out, "  "+escape(f.name)+"\n"...)
	}
	return out
}

func checkTag(t Tag) error {
	switch {
	case t.Label == "" || strings.Trim(t.Label, " \t") != t.Label || strings.ContainsAny(t.Label, ":\r\n"):
		return fmt.Errorf("label %q: %w", t.Label, ErrTag)
	case strings.EqualFold(t.Label, PayloadOxumLabel):
		return fmt.Errorf("label %q is counted by the writer: %w", t.Label, ErrTag)
	case printable(t.Label) != t.Label, printable(t.Value) != t.Value, strings.Contains(t.Label+t.Value, "\x00"):
		return fmt.Errorf("value of %q is not UTF-8 text: %w", t.Label, ErrTag)
	case len(t.Label)+len(t.Value) >= maxLine/2:
		return fmt.Errorf("value of %q is too long: %w", t.Label, ErrTag)
	}
	return nil
}

// formatInfo writes tags so that ParseBagInfo gives them back: lines of a value go on indented.
func formatInfo(tags []Tag) []byte {
	var out []byte
	for _, t := range tags {
		value := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(t.Value)
		out = append(out, t.Label+": "+strings.ReplaceAll(value, "\n", "\n  ")+"\n"...)
	}
	return out
}
