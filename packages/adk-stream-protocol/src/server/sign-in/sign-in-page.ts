import { randomBytes } from 'node:crypto'

import type { FileReply } from '../http/exchange.ts'

type Outcome = 'signed-in' | 'declined' | 'failed' | 'late' | 'unknown'

const PAGES: Readonly<
  Record<Outcome, readonly [status: number, english: string, japanese: string]>
> = {
  'signed-in': [
    200,
    'You are signed in. You can close this window.',
    'サインインしました。このウィンドウは閉じてかまいません。',
  ],
  declined: [
    200,
    'You did not sign in. Close this window, and decline or try again in the chat.',
    'サインインは行われませんでした。このウィンドウを閉じ、チャットで辞退するか、もう一度お試しください。',
  ],
  failed: [
    502,
    'The sign-in did not succeed. Close this window and try again in the chat.',
    'サインインできませんでした。このウィンドウを閉じ、チャットでもう一度お試しください。',
  ],
  late: [
    410,
    'The chat no longer waits for this sign-in. Close this window.',
    'チャットはこのサインインをもう待っていません。このウィンドウを閉じてください。',
  ],
  unknown: [
    400,
    'This sign-in has expired, was already used, or began in another browser. Close this window and try again in the chat.',
    'このサインインは期限切れか、使用済みか、別のブラウザーで始まったものです。このウィンドウを閉じ、チャットでもう一度お試しください。',
  ],
}

/** Returns the page that a person sees after the provider. It closes itself after a sign-in, and never redirects. */
export function signInPage(outcome: Outcome): FileReply {
  const [status, english, japanese] = PAGES[outcome]
  const nonce = randomBytes(16).toString('base64')
  const close = outcome === 'signed-in' ? 'window.close()' : ''
  // The code and the state do not stay in the history of the browser.
  const script = `history.replaceState(null,'',location.pathname);${close}`
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${english.split('.', 1)[0]}</title><body><main><p>${english}</p><p lang="ja">${japanese}</p></main><script nonce="${nonce}">${script}</script></body></html>`
  return {
    type: 'file',
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
    },
    bytes: Buffer.from(html),
  }
}
