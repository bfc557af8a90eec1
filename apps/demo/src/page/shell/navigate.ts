/** Changes the URL without loading the page. Everything that reads the URL follows, as after the back button. */
export function navigate(url: string): void {
  if (window.location.pathname + window.location.search === url) return
  window.history.pushState(null, '', url)
  window.dispatchEvent(new PopStateEvent('popstate'))
}
