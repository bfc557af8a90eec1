// Applies the stored theme before the first paint. A script of its own, because the page's policy forbids inline scripts, and not a
// module, because modules wait for the whole document. `settings.ts` applies later changes.
document.documentElement.dataset.theme = localStorage.getItem('theme') ?? 'system'
