import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

import { ProtocolError } from '../../protocol/errors.ts'
import { isAllowedHost } from '../../server/http/hosts-and-proxies.ts'
import type { Problem } from '../load/problem.ts'

/** Serves a page with the error of an agent that could not be loaded. The page reloads itself when the agent can be. */
export function createFailureServer(findProblem: () => Problem): Server {
  return createServer((request, response) => {
    response.shouldKeepAlive = false
    if (!isAllowedHost(request.headers.host, [])) {
      const error = new ProtocolError('forbidden-host')
      return writeJson(response, error)
    }
    if (!wantsPage(request)) {
      const { message } = findProblem()
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
}

const JAPANESE: typeof ENGLISH = {
  language: 'ja',
  title: 'エージェントを読み込めません',
  hint: 'エラーを修正してファイルを保存すると、このページは自動的に再開します。',
}

const SCRIPT = `const check = async () => {
  const { ok } = await fetch('/health').catch(() => ({ ok: false }))
  if (ok) location.reload()
  else setTimeout(check, 300)
}
check()`

const STYLE = `:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { max-width: 50rem; margin: 3rem auto; padding: 0 1rem }
pre { overflow: auto; padding: 1rem; border: 1px solid; border-radius: 0.5rem }`

const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const POLICY = `default-src 'none'; connect-src 'self'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; frame-ancestors 'none'`

function renderPage({ message, codeFrame }: Problem, labels: typeof ENGLISH): string {
  const frame = codeFrame === undefined ? '' : `<pre tabindex="0">${escape(codeFrame)}</pre>`
  return `<!doctype html>
<html lang="${labels.language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${labels.title}</title>
<style>${STYLE}</style>
<main>
<h1>${labels.title}</h1>
<p role="alert">${escape(message)}</p>
${frame}
<p>${labels.hint}</p>
</main>
<script type="module">${SCRIPT}</script>
</html>
`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
