import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { ProtocolError } from '../../protocol/errors.ts'
import { isAllowedHost } from '../../server/http/hosts-and-proxies.ts'
import type { Problem } from '../load/problem.ts'

/** Serves connections while there is no version of the agent that works. */
export interface WaitingServer {
  /** Serves a connection that was accepted without reading from it. */
  readonly accept: (socket: Socket) => void
  /** Closes connections without a request. Browsers open some in advance, and the agent serves their requests now. */
  readonly release: () => void
}

/**
 * Serves a page that says that the agent is being loaded, or why it could not be loaded if `findProblem` returns a problem. The page loads
 * itself again when the agent can be used.
 */
export function createWaitingServer(findProblem: () => Problem | undefined): WaitingServer {
  const unused = new Set<Socket>()
  const server = createPageServer(findProblem)
  server.prependListener('request', ({ socket }) => unused.delete(socket))
  return {
    accept(socket) {
      unused.add(socket)
      socket.once('close', () => unused.delete(socket))
      server.emit('connection', socket)
      socket.resume()
    },
    release() {
      for (const socket of unused) socket.destroy()
    },
  }
}

function createPageServer(findProblem: () => Problem | undefined): Server {
  return createServer((request, response) => {
    response.shouldKeepAlive = false
    if (!isAllowedHost(request.headers.host, [])) {
      const error = new ProtocolError('forbidden-host')
      return writeJson(response, error)
    }
    if (!wantsPage(request)) {
      const { message } = findProblem() ?? { message: 'The agent is being loaded.' }
      return writeJson(response, new ProtocolError('unavailable', { message }))
    }
    response.writeHead(503, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
    })
    const isJapanese = /^ja\b/i.test(request.headers['accept-language'] ?? '')
    response.end(renderPage(findProblem(), isJapanese ? JAPANESE : ENGLISH))
  })
}

function wantsPage({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && (headers.accept ?? '').includes('text/html')
}

function writeJson(response: ServerResponse, error: ProtocolError): void {
  response.writeHead(error.status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'retry-after': '1',
  })
  response.end(JSON.stringify(error))
}

const ENGLISH = {
  language: 'en',
  title: 'The agent cannot be loaded',
  hint: 'This page continues by itself when the file is saved without the error.',
  loading: 'Loading your agent…',
}

const JAPANESE: typeof ENGLISH = {
  language: 'ja',
  title: 'エージェントを読み込めません',
  hint: 'エラーを修正してファイルを保存すると、このページは自動的に再開します。',
  loading: 'エージェントを読み込んでいます…',
}

const SCRIPT = `const check = async () => {
  const { ok } = await fetch('/health').catch(() => ({ ok: false }))
  if (ok) location.reload()
  else setTimeout(check, 100)
}
check()`

const STYLE = `:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { max-width: 50rem; margin: 3rem auto; padding: 0 1rem }
pre { overflow: auto; padding: 1rem; border: 1px solid; border-radius: 0.5rem }`

const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const POLICY = `default-src 'none'; connect-src 'self'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; frame-ancestors 'none'`

function renderPage(problem: Problem | undefined, labels: typeof ENGLISH): string {
  const title = problem ? labels.title : labels.loading
  const content = problem
    ? `<h1>${title}</h1>\n${renderProblem(problem)}\n<p>${labels.hint}</p>`
    : `<p role="status">${title}</p>`
  return `<!doctype html>
<html lang="${labels.language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
<main>
${content}
</main>
<script type="module">${SCRIPT}</script>
</html>
`
}

function renderProblem({ message, codeFrame }: Problem): string {
  const frame = codeFrame === undefined ? '' : `<pre tabindex="0">${escape(codeFrame)}</pre>`
  return `<p role="alert">${escape(message)}</p>\n${frame}`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
