import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Configuration, Provider } from 'oidc-provider'

import type { Language } from '../../demo-info.ts'

interface CalendarServerOptions {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string }
}

/** The authorization server and the API of the calendar. */
export interface CalendarServer {
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    options: { readonly path: string; readonly language: Language },
  ): Promise<void>
}

/** Creates the calendar. Its sessions and tokens are in memory and end with the process. */
export function createCalendarServer({ issuer, client }: CalendarServerOptions): CalendarServer {
  const provider = quietly(() => new Provider(issuer, configure(issuer, client)))
  const authorize = provider.callback()
  return {
    async handle(request, response, { path, language }) {
      // The library finds the path under which it is served from both.
      Object.assign(request, { originalUrl: request.url, url: request.url?.slice(path.length) })
      const route = `${request.method} ${request.url?.split('?', 1)[0]}`
      if (route === 'GET /events') return sendEvents(provider, request, response)
      if (route === 'GET /sign-in.css') return sendStyles(response)
      if (route.startsWith('GET /interaction/')) {
        await provider.interactionDetails(request, response)
        response.writeHead(200, {
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
        })
        response.end(renderSignIn(language, `${path}/sign-in.css`))
      } else if (route.startsWith('POST /interaction/')) {
        const account = new URLSearchParams(await readBody(request)).get('account')
        const result = isAccount(account)
          ? { login: { accountId: account }, consent: {} }
          : { error: 'access_denied' }
        await provider.interactionFinished(request, response, result)
      } else await authorize(request, response)
    },
  }
}

async function sendEvents(
  provider: Provider,
  { headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  const { accountId, isValid } = (await provider.AccessToken.find(token ?? '')) ?? {}
  const isKnown = isValid === true && isAccount(accountId)
  response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json; charset=utf-8' })
  const language = headers['accept-language'] === 'ja' ? 'ja' : 'en'
  response.end(JSON.stringify(isKnown ? listEvents(accountId, language) : { error: 'sign in' }))
}

async function sendStyles(response: ServerResponse): Promise<void> {
  const styles = await readFile(new URL('sign-in.css', import.meta.url))
  response.writeHead(200, { 'content-type': 'text/css; charset=utf-8' }).end(styles)
}

function configure(issuer: string, client: CalendarServerOptions['client']): Configuration {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [client.redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'demo', alg: 'ES256' }] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true, allowedPolicy: () => true },
    },
    scopes: ['openid', 'email', 'calendar.read'],
    claims: { openid: ['sub'], email: ['email'] },
    // The account is in the ID token, which saves a request.
    conformIdTokenClaims: false,
    interactions: { url: (_context, { uid }) => `${new URL(issuer).pathname}/interaction/${uid}` },
    ttl: {
      AccessToken: 3_600,
      RefreshToken: 86_400,
      Grant: 86_400,
      Session: 86_400,
      Interaction: 600,
      IdToken: 600,
    },
    issueRefreshToken: async () => true,
    findAccount: async (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, email: `${sub}@example.com` }),
    }),
    // A person who chooses an account allows everything that the page of the sign-in lists.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: client.id,
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email calendar.read')
      await grant.save()
      return grant
    },
  }
}

/** A form of the sign-in page is small. */
const MAX_FORM_BYTES = 1_000

async function readBody(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const piece of request) {
    body += String(piece)
    if (body.length > MAX_FORM_BYTES) return ''
  }
  return body
}

/** The library prints that Node 20 is old, and that its sessions are in memory. */
function quietly<Result>(create: () => Result): Result {
  const { info, warn } = console
  Object.assign(console, { info: () => undefined, warn: () => undefined })
  try {
    return create()
  } finally {
    Object.assign(console, { info, warn })
  }
}

/** Returns the page on which a person chooses an account of the demo's calendar. It has no scripts. */
function renderSignIn(language: Language, styles: string): string {
  const { title, what, access, as, cancel } = TEXTS[language]
  const buttons = ACCOUNTS.map(
    (account) =>
      `<button name="account" value="${account}">${as(NAMES[account][language])}<small>${account}@example.com</small></button>`,
  )
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title}</title><link rel="stylesheet" href="${styles}"></head><body><main><h1>${title}</h1><p>${what}</p><p>${access}</p><form method="post">${buttons.join('')}<button name="account" value="" class="quiet">${cancel}</button></form></main></body></html>`
}

const TEXTS = {
  en: {
    title: 'Demo Calendar',
    what: 'This page belongs to the demo. It stands for the sign-in page of a service such as Google: there is no password, and nothing leaves this machine.',
    access: 'The assistant asks to read your calendar.',
    as: (name: string) => `Sign in as ${name}`,
    cancel: 'Cancel',
  },
  ja: {
    title: 'Demo Calendar',
    what: 'これはデモのページで、Googleなどのサービスのサインイン画面の代わりです。パスワードはなく、このコンピューターの外には何も送信されません。',
    access: 'アシスタントがカレンダーの閲覧を求めています。',
    as: (name: string) => `${name}としてサインイン`,
    cancel: 'キャンセル',
  },
} as const satisfies Record<Language, unknown>

/** The accounts of the demo's calendar. */
const ACCOUNTS = ['hana', 'ben'] as const
type Account = (typeof ACCOUNTS)[number]

const NAMES = {
  hana: { en: 'Hana', ja: '花' },
  ben: { en: 'Ben', ja: 'ベン' },
} as const satisfies Record<Account, Record<Language, string>>

function isAccount(value: unknown): value is Account {
  return ACCOUNTS.some((account) => account === value)
}

/** Returns the sample events of an account for today. */
function listEvents(account: Account, language: Language) {
  return {
    owner: NAMES[account][language],
    events: EVENTS[account].map(([time, en, ja]) => ({ time, title: language === 'ja' ? ja : en })),
    note:
      language === 'ja'
        ? 'デモのカレンダーの見本です。'
        : 'These are sample events of the demo’s own calendar.',
  }
}

const EVENTS = {
  hana: [
    ['09:30', 'Team meeting', 'チームの会議'],
    ['12:00', 'Lunch with Alice', 'アリスさんと昼食'],
    ['16:00', 'Dentist', '歯医者'],
  ],
  ben: [
    ['10:00', 'Interview', '面接'],
    ['19:00', 'Choir rehearsal', '合唱の練習'],
  ],
} as const satisfies Record<Account, readonly (readonly [string, string, string])[]>
