// Makes an OCFL storage root by ocfl-js: node ocfljs.js DIR LAYOUT ID..., each object with two versions.
const ocfl = require('@ocfl/ocfl-fs');
const [root, extensionName, ...ids] = process.argv.slice(2);

(async () => {
  const storage = ocfl.storage({ root, workspace: root + '-workspace', layout: { extensionName } });
  await storage.create();
  for (const id of ids) {
    const object = storage.object(id);
    await object.update(async (version) => {
      await version.write('plate.txt', 'glass');
      await version.write('box/list.txt', 'one');
    });
    await object.update(async (version) => {
      await version.write('box/list.txt', 'one, two');
    });
  }
})().catch((fault) => {
  console.error(fault);
  process.exit(1);
});
