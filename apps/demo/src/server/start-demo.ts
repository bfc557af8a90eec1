import { existsSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

import {
  anyOf,
  apiKey,
  type Authenticate,
  type Bridge,
  createBridge,
  signedCookie,
} from 'adk-stream-protocol/server'
import type { StudioListeners } from 'adk-stream-protocol-studio'

import { createDemoAgent } from '../agent/demo-agent.ts'
import { createOpenWeather } from '../agent/weather/open-weather.ts'
import { sampleWeather, type Weather } from '../agent/weather/weather.ts'
import { APPROVER_ROLE, createApprovalPolicy } from './approval-policy.ts'
import {
  type CalendarService,
  createCalendarService,
  findLocalUrl,
} from './calendar/calendar-service.ts'
import { createListener } from './listener.ts'
import { type DemoData, openData } from './data.ts'
import { createDirectRoute } from './direct-route.ts'
import { DemoError } from './demo-error.ts'
import { openHttpServer } from './http-server.ts'
import { createLanguages, type Languages } from './languages.ts'
import { createLifetime, type Lifetime } from './lifetime.ts'
import { type DemoModel, openModel } from './model.ts'
import { findNetworkUrl } from './network-url.ts'
import { createPush, PUSH_CHANNEL } from './push.ts'
import { PAGE_DIR } from './page-dir.ts'
import {
  APPROVER_ADDRESS,
  choosingRoles,
  issueLink,
  createApproverCode,
  mayChooseRoles,
  mayInspectModel,
  nameBrowser,
} from './roles.ts'
import { createSlackService, type SlackService } from './slack/slack-service.ts'
import { type Environment, readSettings, type Settings } from './settings.ts'

/** A running demo. `close` waits for running replies and calls; disposing it stops them. */
export interface Demo extends AsyncDisposable {
  readonly url: string
  /** The URL that makes a browser the second approver, if the settings allow it. */
  readonly approverUrl: string | undefined
  /** Start-up output for the terminal. */
  readonly summary: readonly string[]
  /** Closes the demo on SIGTERM or SIGINT, and ends the process. */
  closeOnSignals(): void
  close(): Promise<void>
}

export interface DemoOptions {
  /** Called with internal errors, of which clients see a neutral message. Default: ignores them. */
  readonly onError?: (error: unknown) => void
}

/** Starts the agent, the bridge and the page on one port. */
export async function startDemo(env: Environment, options: DemoOptions = {}): Promise<Demo> {
  const settings = readSettings(env)
  if (!existsSync(join(PAGE_DIR, 'index.html'))) {
    throw new DemoError('page-missing', 'The page is not built. Run: npm run build -w apps/demo')
  }
  const lifetime = createLifetime()
  try {
    const code = mayChooseRoles(settings)
      ? (settings.approverCode ?? createApproverCode())
      : undefined
    const { url, urls, model, bridge, slackUrl } = await open({ settings, options, lifetime, code })
    const approverUrl = code && `${url}${APPROVER_ADDRESS}&code=${code}`
    return {
      url,
      approverUrl,
      summary: summarise(settings, { urls, model, approverUrl, slackUrl }),
      closeOnSignals: () => bridge.closeOnSignals(lifetime),
      close: () => lifetime.close(),
      [Symbol.asyncDispose]: async () => {
        await bridge.close({ drainMs: 0 })
        await lifetime.close()
      },
    }
  } catch (cause) {
    await lifetime.close()
    throw cause
  }
}

interface OpenOptions {
  readonly settings: Settings
  readonly options: DemoOptions
  readonly lifetime: Lifetime
  /** The code that makes a browser the second approver. Without it, no browser can become one. */
  readonly code: string | undefined
}

async function open({ settings, options, lifetime, code }: OpenOptions) {
  const languages = createLanguages()
  const model = lifetime.use(await openModel(settings, () => languages.latest()))
  const data = lifetime.use(await openData(settings))
  const { store, wallets } = data
  const identify = createAuthenticate(settings, data, code)
  const authenticate = languages.recording(identify)
  const weather = settings.weatherKey
    ? createOpenWeather({ apiKey: settings.weatherKey })
    : sampleWeather
  const onError = options.onError ?? ignore
  // The bridge needs the URL of the server, which has its port only when it listens.
  let listeners: StudioListeners | undefined
  const server = await openHttpServer({
    ...settings,
    listener: (request, response) => listeners?.request(request, response),
    upgrade: (...upgrade) => listeners?.upgrade(...upgrade),
    drainMs: 2000,
  })
  lifetime.use(server)
  const baseUrl = findLocalUrl(settings, server.url)
  const networkUrl = findNetworkUrl(
    { host: settings.host, port: new URL(server.url).port },
    networkInterfaces(),
  )
  const calendar =
    baseUrl === undefined
      ? undefined
      : createCalendarService({ baseUrl, authenticate, languages, onError })
  const { reminderMs } = settings
  // The forms of the workspace are not in the language that was chosen in the page.
  const slack =
    baseUrl === undefined
      ? undefined
      : createSlackService({
          baseUrl,
          authenticate: identify,
          languages,
          reminderMs,
          phone: [PUSH_CHANNEL, createPush(await store.secret('push'))],
          onError,
        })
  const bridge = createDemoBridge({
    settings,
    options,
    model,
    data,
    weather,
    calendar,
    slack,
    authenticate,
    languages,
  })
  // Closes first: the responses of the server end when the turns end.
  lifetime.defer(() => bridge.close())
  const direct = createDirectRoute({
    authenticate,
    wallets,
    weather,
    endpoint: model.endpoint,
    secret: () => store.secret('direct-approvals'),
    onError,
  })
  listeners = createListener({
    settings,
    bridge,
    authenticate,
    direct,
    calendar,
    slack,
    networkUrl,
  })
  const urls = [baseUrl ?? server.url, networkUrl].filter((url) => url !== undefined)
  const slackUrl = baseUrl === undefined ? undefined : `${baseUrl}/slack`
  return { url: server.url, urls, model: model.label, bridge, slackUrl }
}

interface BridgeParts extends Pick<OpenOptions, 'settings' | 'options'> {
  readonly model: DemoModel
  readonly data: DemoData
  readonly weather: Weather
  readonly calendar: CalendarService | undefined
  readonly slack: SlackService | undefined
  readonly authenticate: Authenticate
  readonly languages: Languages
}

function createDemoBridge({
  settings,
  options,
  model,
  data: { store, wallets },
  weather,
  calendar,
  slack,
  authenticate,
  languages,
}: BridgeParts): Bridge {
  const deadlineMs = settings.approvalDeadlineMs
  return createBridge({
    agent: createDemoAgent({
      model: model.llm,
      wallets,
      weather,
      notesFile: join(settings.dataDir, 'notes.json'),
      eventsUrl: calendar?.eventsUrl,
      languageOf: (userId) => languages.of(userId),
    }),
    store,
    appName: 'demo',
    authenticate,
    allowedHosts: settings.allowedHosts,
    allowedOrigins: settings.allowedOrigins,
    namePrincipal: (id) => nameBrowser(id, languages.of(id)),
    approvalLinks: { issue: issueLink },
    // For questions, sign-ins, and tools that request a confirmation themselves.
    approvalDeadlineMs: deadlineMs,
    approvals: createApprovalPolicy({ wallets, languages, deadlineMs }),
    // The MCP server of the notes asks for the text of a new one.
    elicitation: true,
    // The reply survives a page reload and a short network outage.
    disconnectGraceMs: 30_000,
    recordModelCalls: mayInspectModel(settings) && 'with-authentication',
    developer: mayInspectModel(settings),
    ...(settings.leaseMs !== undefined && { limits: { leaseMs: settings.leaseMs } }),
    live: { model: model.live, graceMs: 30_000, approvalDeadlineMs: deadlineMs },
    ...(calendar && { signIn: calendar.signIn }),
    ...(slack && { notify: slack.notify }),
    ...(options.onError && { onError: options.onError }),
  })
}

function createAuthenticate(
  settings: Settings,
  { store, approvers }: DemoData,
  code: string | undefined,
): Authenticate {
  const cookie = signedCookie({ secret: () => store.secret('cookie') })
  const browser = code === undefined ? cookie : choosingRoles(cookie, code, approvers)
  return settings.apiKey === undefined
    ? browser
    : anyOf(apiKey({ [settings.apiKey]: { id: 'api-client', roles: [APPROVER_ROLE] } }), browser)
}

function ignore(): void {}

function summarise(
  settings: Settings,
  {
    urls,
    model,
    approverUrl,
    slackUrl,
  }: {
    urls: readonly string[]
    model: string
    approverUrl: string | undefined
    slackUrl: string | undefined
  },
): readonly string[] {
  const weather = settings.weatherKey ? 'OpenWeatherMap' : 'sample data'
  return [
    `Open ${urls.join(', or on a phone in the same network ')}`,
    `Model    ${model}`,
    `Weather  ${weather}`,
    `Data     ${settings.databaseUrl === undefined ? settings.dataDir : `PostgreSQL on ${new URL(settings.databaseUrl).host}`}`,
    ...(approverUrl === undefined
      ? []
      : [`Approver ${approverUrl} makes another browser the second approver of large payments`]),
    ...(slackUrl === undefined ? [] : [`Slack    ${slackUrl} shows what waits for you as cards`]),
    ...(settings.apiKey === undefined ? [] : ['Clients  may also sign in with X-API-Key']),
  ]
}
