package upload

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// continueUpload receives more bytes of an upload.
func (s *Service) continueUpload(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), r.PathValue("id")
	if err := offsetMedia(r); err != nil {
		return err
	}
	offset, err := count(wire.UploadOffsetHeader, r.Header.Get(wire.UploadOffsetHeader))
	if err != nil {
		return err
	}
	in, ended, err := s.uploadAt(ctx, id)
	if err != nil {
		return err
	}
	if in.Offset != offset {
		return offsetMismatch(w, in)
	}
	if length := r.Header.Get(wire.UploadLengthHeader); length != "" {
		size, err := count(wire.UploadLengthHeader, length)
		if err != nil {
			return err
		}
		if in.SizeBytes >= 0 && in.SizeBytes != size || size < in.Offset {
			return badRequest("upload %s cannot have a size of %d bytes: %d of %s were received", id, size, in.Offset, numberOr(in.SizeBytes))
		}
		if in.SizeBytes = size; size == 0 {
			return errors.Join(emptyUpload(in.Filename), s.giveUp(ctx, id))
		}
	}
	if !ended || r.ContentLength != 0 {
		if in, err = s.receiveBytes(w, r, in); err != nil {
			return err
		}
	}
	setOffset(w.Header(), in)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// offsetMismatch refuses bytes at another offset than the upload's.
func offsetMismatch(w http.ResponseWriter, in registry.Incoming) error {
	setOffset(w.Header(), in)
	return wire.NewProblem(http.StatusConflict, wire.CodeOffset, fmt.Sprintf(
		"upload %s is at offset %d; nothing of this request was stored; get the offset by HEAD and continue there", in.ID, in.Offset))
}

// checksumOf parses Upload-Checksum; the hash is nil if there is none.
func checksumOf(r *http.Request) (hash.Hash, []byte, error) {
	header := r.Header.Get(wire.UploadChecksumHeader)
	if header == "" {
		return nil, nil, nil
	}
	algorithm, encoded, _ := strings.Cut(header, " ")
	want, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err == nil && strings.Contains(","+checksums()+",", ","+algorithm+",") {
		if h, err := fixity.New(algorithm); err == nil && len(want) == h.Size() {
			return h, want, nil
		}
	}
	return nil, nil, badRequest("the header %s must be an algorithm (%s) and a digest in base64, not %q", wire.UploadChecksumHeader, checksums(), header)
}

// receiveBytes receives the body of a request into an upload at in.Offset, and finishes the upload
// if it is complete. The request may have set in.SizeBytes.
func (s *Service) receiveBytes(w http.ResponseWriter, r *http.Request, in registry.Incoming) (registry.Incoming, error) {
	ctx, id, size := r.Context(), in.ID, in.SizeBytes
	sum, want, err := checksumOf(r)
	if err != nil {
		return in, err
	}
	left := int64(-1)
	if size >= 0 {
		left = size - in.Offset
	}
	if r.ContentLength > left && left >= 0 {
		return in, wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, fmt.Sprintf(
			"the request has %d bytes, but only %d of upload %s are missing; nothing of this request was stored", r.ContentLength, left, id))
	}
	if err := s.checkRoom(ctx, max(r.ContentLength, left)); err != nil {
		return in, err
	}
	f := s.newSender(w)
	done, err := s.acquire(ctx, id, f)
	if err != nil {
		return in, err
	}
	defer done()
	offset := in.Offset
	if in, err = s.Registry.TakeUpload(ctx, id, offset); err != nil {
		if now, ended, gone := s.uploadAt(ctx, id); gone == nil && ended { // the request before has finished it
			return now, offsetMismatch(w, now)
		}
		return in, s.uploadMissing(err, id)
	}
	if in.Offset != offset {
		return in, offsetMismatch(w, in)
	}
	if in.Whole() && in.SizeBytes == size { // the request that brought the last byte could not finish it
		_, err := s.finish(ctx, in, nil)
		return in, err
	}
	rc := s.receivers.unpark(in)
	if rc == nil {
		if rc, err = s.resumeReceiver(ctx, in); errors.Is(err, errBytesGone) {
			return in, errors.Join(err, s.giveUp(context.WithoutCancel(ctx), id))
		} else if err != nil {
			return in, err
		}
	}
	flow := &transfer{body: r.Body, from: f, to: rc, left: left, sum: sum}
	if sum == nil {
		flow.save = func() error { return s.save(ctx, rc, size) }
	}
	err = flow.run()
	if err == nil && sum != nil && subtle.ConstantTimeCompare(sum.Sum(nil), want) == 0 {
		err = wire.NewProblem(wire.StatusChecksum, wire.CodeChecksum, fmt.Sprintf(
			"the bytes of this request do not match its checksum; upload %s is still at offset %d; send them again", id, rc.in.Offset))
	}
	return s.acknowledge(ctx, w, rc, size, sum != nil, err)
}

// acknowledge saves what a request has sent, unless err says that it does not count. If the sender
// broke off, the bytes that came count, unless only a checksum could have verified them.
func (s *Service) acknowledge(ctx context.Context, w http.ResponseWriter, rc *receiver, size int64, checked bool, err error) (registry.Incoming, error) {
	var cut *cutError
	broken := errors.As(err, &cut)
	if err != nil && !broken || broken && checked && rc.size > rc.in.Offset {
		rc.release()
		setOffset(w.Header(), rc.in)
		return rc.in, s.claimLost(w, rc.in, interrupted(rc, cut, err))
	}
	if rc.size > rc.in.Offset || size != rc.in.SizeBytes {
		if failed := s.save(ctx, rc, size); failed != nil {
			rc.release()
			return rc.in, s.claimLost(w, rc.in, failed)
		}
	}
	if rc.in.Whole() {
		_, err := s.finish(ctx, rc.in, rc)
		return rc.in, err
	}
	s.receivers.park(rc)
	if broken {
		setOffset(w.Header(), rc.in)
		return rc.in, interrupted(rc, cut, err)
	}
	return rc.in, nil
}

// interrupted returns the problem of a sender that broke off. It returns another error unchanged.
func interrupted(rc *receiver, cut *cutError, err error) error {
	if cut == nil {
		return err
	}
	return wire.NewProblem(http.StatusBadRequest, wire.CodeBrokenOff, fmt.Sprintf(
		"the request broke off (%v); upload %s is at offset %d; continue there", cut.err, rc.in.ID, rc.in.Offset))
}

// claimLost returns the problem of a request whose upload another process has taken; other errors
// unchanged.
func (s *Service) claimLost(w http.ResponseWriter, in registry.Incoming, err error) error {
	if !errors.Is(err, registry.ErrClaimLost) {
		return err
	}
	w.Header().Del(wire.UploadOffsetHeader)
	return wire.NewProblem(http.StatusConflict, wire.CodeOffset, fmt.Sprintf(
		"another request has continued upload %s, or it was removed; get the offset by HEAD and continue there", in.ID))
}
