// The types of `styles.css`: TypeScript 7 looks for the types of an import without names too.
// oxlint-disable-next-line unicorn/require-module-specifiers -- Without it, the file is no module.
export {}
