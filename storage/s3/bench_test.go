package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/holdfast/holdfast/awschain"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

const benchSize = 64 * mib

// BenchmarkBesideSDK moves 64 MiB alternately through the driver and through a plain loop over the
// SDK with the same SHA-256 of each part. x-put and x-get say how many times as fast the driver is.
func BenchmarkBesideSDK(b *testing.B) {
	server := start(b)
	s := open(b, server.Address("bench"))
	loaded, err := awschain.Load(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	client := awss3.NewFromConfig(loaded, func(o *awss3.Options) { o.BaseEndpoint, o.UsePathStyle = &server.Endpoint, true })
	data := random(benchSize)
	var put, get, barePut, bareGet time.Duration
	took := func(total *time.Duration, f func() error) {
		begin := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		*total += time.Since(begin)
	}
	n := 0
	for b.Loop() {
		n++
		key := fmt.Sprint(n)
		took(&put, func() error { _, err := storage.Put(b.Context(), s, key, data); return err })
		took(&barePut, func() error { return barePutObject(b.Context(), client, "bare/"+key, data) })
		took(&get, func() error {
			r, err := s.Open(b.Context(), key, 0, -1)
			if err != nil {
				return err
			}
			defer r.Close()
			return drained(r)
		})
		took(&bareGet, func() error {
			out, err := client.GetObject(b.Context(), &awss3.GetObjectInput{Bucket: aws.String(s3test.Bucket), Key: aws.String("bare/" + key)})
			if err != nil {
				return err
			}
			defer out.Body.Close()
			return drained(out.Body)
		})
		if err := s.Delete(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
	per := func(d time.Duration) float64 { return benchSize / mib * float64(n) / d.Seconds() }
	b.ReportMetric(per(put), "MiB/s-put")
	b.ReportMetric(per(get), "MiB/s-get")
	b.ReportMetric(per(put)/per(barePut), "x-put")
	b.ReportMetric(per(get)/per(bareGet), "x-get")
}

func drained(r io.Reader) error {
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 256<<10))
	if err == nil && n != benchSize {
		err = fmt.Errorf("%d bytes", n)
	}
	return err
}

// barePutObject uploads parts of 16 MiB one after the other.
func barePutObject(ctx context.Context, client *awss3.Client, key string, data []byte) error {
	bucket := aws.String(s3test.Bucket)
	upload, err := client.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{
		Bucket: bucket, Key: &key, ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	if err != nil {
		return err
	}
	var parts []types.CompletedPart
	for at := 0; at < len(data); at += 16 * mib {
		part := data[at:min(at+16*mib, len(data))]
		sum := sha256.Sum256(part)
		text, n := base64.StdEncoding.EncodeToString(sum[:]), int32(len(parts)+1)
		out, err := client.UploadPart(ctx, &awss3.UploadPartInput{
			Bucket: bucket, Key: &key, UploadId: upload.UploadId, PartNumber: &n, Body: bytes.NewReader(part), ChecksumSHA256: &text,
		})
		if err != nil {
			return err
		}
		parts = append(parts, types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumSHA256: &text})
	}
	_, err = client.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{
		Bucket: bucket, Key: &key, UploadId: upload.UploadId, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}

// BenchmarkMemory writes eight files of 48 MiB concurrently, as a download does, and reports the
// size of the heap.
func BenchmarkMemory(b *testing.B) {
	s := open(b, start(b).Address("bench"))
	chunk := random(256 << 10)
	var most uint64
	for b.Loop() {
		done := make(chan error)
		for i := range 8 {
			go func() {
				w, err := s.Create(b.Context(), fmt.Sprint(i))
				for range 48 * 4 {
					if err == nil {
						_, err = w.Write(chunk)
					}
				}
				if err == nil {
					_, err = w.Commit(b.Context())
				}
				done <- err
			}()
		}
		for left := 8; left > 0; {
			select {
			case err := <-done:
				if left--; err != nil {
					b.Fatal(err)
				}
			case <-time.After(5 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.Sys-m.HeapReleased)
			}
		}
		if err := s.DeletePrefix(b.Context(), "x"); err != nil {
			b.Fatal(err)
		}
		for i := range 8 {
			_ = s.Delete(b.Context(), fmt.Sprint(i))
		}
	}
	b.ReportMetric(float64(most)/mib, "MiB-most")
}
