package source_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/source"
)

func TestParseS3(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]source.S3Address{
		"s3://bucket/a/b.tif":               {Bucket: "bucket", Key: "a/b.tif"},
		"S3://my.bucket-1/a%20b%3F%25+c":    {Bucket: "my.bucket-1", Key: "a b?%+c"},
		"s3://bucket//a/../b/":              {Bucket: "bucket", Key: "/a/../b/"},
		"s3://bucket/a?versionId=v.1_2":     {Bucket: "bucket", Key: "a", VersionID: "v.1_2"},
		"s3://bucket/\u00fc?versionId=null": {Bucket: "bucket", Key: "\u00fc", VersionID: "null"},
	} {
		got, err := source.ParseS3(raw)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", raw, err, diff)
		}
		again, err := source.ParseS3(got.URL().String())
		if again != got || err != nil {
			t.Errorf("%s: written as %s and read as %+v, %v", raw, got.URL(), again, err)
		}
		if shown := source.Redact(raw); got.VersionID != "" && !strings.Contains(shown, "versionId="+got.VersionID) {
			t.Errorf("%s is shown as %s, without its version", raw, shown)
		}
	}
	for _, raw := range []string{
		"", "s3:", "s3://", "s3://bucket", "s3://bucket/", "s3:bucket/a", "http://bucket/a", "s3://B/a", "s3://ab/a", "s3://Bucket/a",
		"s3://10.0.0.1/a", "s3://bucket:80/a", "s3://s3cr3t@bucket/a", "s3://u:s3cr3t@bucket/a", "s3://-bucket/a", "s3://bucket./a", "s3://b..t/a",
		"s3://bucket/a?x=s3cr3t", "s3://bucket/a?versionId=1&versionId=2", "s3://bucket/a?versionId=1&x=1", "s3://bucket/a#", "s3://bucket/a#b",
		"s3://bucket/%zz", "s3://bucket/a?versionId=%zz", "s3://" + strings.Repeat("b", 64) + "/a", "s3://b_t/a", "s3://[::1]/a",
	} {
		if got, err := source.ParseS3(raw); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %+v, %v; want it refused and not repeated", raw, got, err)
		}
	}
}
