import type { IncomingMessage, ServerResponse } from 'node:http'

import { type Authenticate, ProtocolError, type SignInOptions } from 'adk-stream-protocol/server'
import { toAuthenticateRequest } from 'adk-stream-protocol-studio'

import type { Languages } from '../languages.ts'
import type { Settings } from '../settings.ts'
import type { CalendarServer } from './calendar-server.ts'
import type { Language } from '../../demo-info.ts'
import { isEverywhere } from '../network-url.ts'

/** A calendar of the demo, with an authorization server of its own. It stands for a service such as Google Calendar, and needs no network. */
export interface CalendarService {
  /** The URL of the API that returns the events of the person whose access token it receives. */
  readonly eventsUrl: string
  readonly signIn: SignInOptions
  /** Whether a page on this host can sign in. A cookie binds a sign-in to its host. */
  serves(host: string | undefined): boolean
  /** Responds to a request for the calendar, or to one that cannot begin a sign-in. Returns false if it is for another part of the demo. */
  respond(request: IncomingMessage, response: ServerResponse): boolean
}

export interface CalendarOptions {
  /** The URL of the demo on this machine. */
  readonly baseUrl: string
  readonly authenticate: Authenticate
  readonly languages: Pick<Languages, 'of'>
  readonly onError: (error: unknown) => void
}

const PATH = '/calendar'
const CLIENT = { id: 'demo', secret: 'the client of the demo' }

/**
 * Returns the URL at which a browser on this machine reaches the demo. Returns undefined if there is none, or if several instances share
 * a database: the accounts and tokens of the calendar are in the memory of one process.
 */
export function findLocalUrl(
  { host, databaseUrl }: Pick<Settings, 'host' | 'databaseUrl'>,
  url: string,
): string | undefined {
  if (databaseUrl !== undefined) return undefined
  if (['127.0.0.1', '::1', 'localhost'].includes(host)) return url
  return isEverywhere(host) ? `http://127.0.0.1:${new URL(url).port}` : undefined
}

/** Creates the calendar at `/calendar`. Its libraries are loaded when it is used for the first time. */
export function createCalendarService(options: CalendarOptions): CalendarService {
  const { baseUrl, authenticate, languages, onError } = options
  const issuer = baseUrl + PATH
  const { host: ownHost } = new URL(baseUrl)
  let server: Promise<CalendarServer> | undefined
  const open = (): Promise<CalendarServer> => {
    server ??= import('./calendar-server.ts').then(({ createCalendarServer }) =>
      createCalendarServer({
        issuer,
        client: { ...CLIENT, redirectUri: `${baseUrl}/sign-in/calendar/callback` },
      }),
    )
    return server
  }
  const languageOf = async (request: IncomingMessage): Promise<Language> => {
    const principal = await authenticate(toAuthenticateRequest(request))
    return languages.of(principal?.id ?? '')
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const [calendar, language] = await Promise.all([open(), languageOf(request)])
      await calendar.handle(request, response, { path: PATH, language })
    } catch (error) {
      onError(error)
      if (!response.headersSent) response.writeHead(500)
      response.end()
    }
  }
  const serves = (host: string | undefined): boolean => host === ownHost
  return {
    eventsUrl: `${issuer}/events`,
    signIn: {
      baseUrl,
      providers: {
        calendar: {
          type: 'openIdConnect',
          label: 'Demo Calendar',
          issuer,
          clientId: CLIENT.id,
          clientSecret: CLIENT.secret,
          scopes: ['openid', 'email', 'calendar.read'],
        },
      },
    },
    serves,
    respond(request, response) {
      const path = request.url?.split('?', 1)[0] ?? ''
      if (path.startsWith(`${PATH}/`)) void serve(request, response)
      else if (path.startsWith('/sign-ins/') && request.method === 'POST') {
        if (serves(request.headers.host)) return false
        const message = `Open the demo at ${baseUrl} to sign in.`
        const error = new ProtocolError('sign-in-failed', { message })
        response.writeHead(error.status, { 'content-type': 'application/json; charset=utf-8' })
        response.end(JSON.stringify(error))
      } else return false
      return true
    },
  }
}
