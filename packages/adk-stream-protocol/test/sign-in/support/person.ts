/** A browser with cookies for several servers, which follows redirects like a person who signs in. */
export class Person {
  readonly #cookies = new Map<string, Map<string, string>>()
  readonly #moved: Readonly<Record<string, string>>
  /** The text of everything that the browser received from the servers in `moved`. */
  readonly received: string[] = []

  /** `moved` maps public origins to the real ones of the test. */
  constructor(moved: Readonly<Record<string, string>> = {}) {
    this.#moved = moved
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, { redirect: 'manual', ...init })
    const url = new URL(request.url)
    const real = this.#moved[url.origin]
    const jar = this.#jar(url.origin)
    const headers = new Headers(request.headers)
    if (jar.size > 0)
      headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const body = request.method === 'GET' ? undefined : await request.text()
    const response = await fetch(real === undefined ? url : `${real}${url.pathname}${url.search}`, {
      method: request.method,
      redirect: 'manual',
      headers,
      signal: request.signal,
      ...(body !== undefined && { body }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';', 1)
      const [name = '', value = ''] = pair.split(/=(.*)/s, 2)
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream) return response
    const text = await response.text()
    if (real !== undefined) this.received.push(text, JSON.stringify([...response.headers]))
    return new Response(response.status === 204 ? null : text, response)
  }

  /** Opens a URL and follows redirects, until `isEnd` or a page. Returns the last URL and its page. */
  async visit(
    address: string,
    isEnd: (url: URL) => boolean = () => false,
  ): Promise<{ readonly url: URL; readonly status: number; readonly text: string }> {
    let body: URLSearchParams | undefined
    for (let url = new URL(address), hops = 0; hops < 20; hops += 1) {
      if (isEnd(url)) return { url, status: 0, text: '' }
      const response = await this.fetch(url, body && { method: 'POST', body })
      const [location, text] = [response.headers.get('location'), await response.text()]
      const form = /<form method="post" action="([^"]+)">/.exec(text)?.[1]
      const isSubmitted = form !== undefined && text.includes('document.forms[0].submit()')
      if (location === null && !isSubmitted) return { url, status: response.status, text }
      body = isSubmitted ? readInputs(text) : undefined
      url = new URL(location ?? form ?? '', url)
    }
    throw new Error('The browser was redirected too often.')
  }

  /** Copies the cookies of another browser for an origin, as an attacker does. */
  steal(other: Person, origin: string): void {
    for (const [name, value] of other.#jar(origin)) this.#jar(origin).set(name, value)
  }

  #jar(origin: string): Map<string, string> {
    const known = this.#cookies.get(origin) ?? new Map<string, string>()
    this.#cookies.set(origin, known)
    return known
  }
}

function readInputs(html: string): URLSearchParams {
  const inputs = html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return new URLSearchParams([...inputs].map(([, name = '', value = '']) => [name, value]))
}
