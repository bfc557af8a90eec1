import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { ModelPrices } from 'adk-stream-protocol-studio'
import { z } from 'zod'

import { DemoError } from './demo-error.ts'

/** The settings of the demo, from environment variables. */
export interface Settings {
  readonly host: string
  readonly port: number
  /** Host names of the demo, in addition to `localhost` and IP addresses. */
  readonly allowedHosts: readonly string[]
  /** Origins of pages on other hosts or ports that may use the demo. */
  readonly allowedOrigins: readonly string[]
  /** The folder of chats, wallets and the cookie secret. Not used with a `databaseUrl`. */
  readonly dataDir: string
  /** A PostgreSQL database for chats and wallets, which several instances may share. */
  readonly databaseUrl: string | undefined
  /** The name of this instance. The page shows it if there are several. */
  readonly instance: string | undefined
  readonly model: string
  /** The model of live conversations. */
  readonly liveModel: string
  /** A key of the Gemini API. Without it, the demo uses the built-in emulator. */
  readonly geminiKey: string | undefined
  /** The prices of models in US dollars per million tokens, for an estimate of the cost. */
  readonly prices: Readonly<Record<string, { readonly input: number; readonly output: number }>>
  /** An endpoint other than Google's, for example a separate emulator. */
  readonly geminiBaseUrl: string | undefined
  /** A running emulator of the demo, which several instances share. Default: each process starts its own. */
  readonly emulatorUrl: string | undefined
  readonly weatherKey: string | undefined
  /** The `X-API-Key` of other clients. Without it, only the cookie of the page is accepted. */
  readonly apiKey: string | undefined
  /** The time to decide an approval, in ms. */
  readonly approvalDeadlineMs: number
  /** After how long a person is reminded of an approval, in ms. */
  readonly reminderMs: number
  /** How long after the last sign of life of an instance another one takes over its work, in ms. Default: the bridge's. */
  readonly leaseMs: number | undefined
  /** The code that makes a browser the second approver. Default: a new one at each start. */
  readonly approverCode: string | undefined
}

/** Relative paths start here, from wherever the demo is started. */
const DEMO_FOLDER = fileURLToPath(new URL('../..', import.meta.url))

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads the settings. Throws a `DemoError` (`bad-setting`) for the first invalid value. */
export function readSettings(env: Environment): Settings {
  const schema = env['DEMO_ALLOW_SHORT_API_KEY'] === '1' ? Variables.extend({ API_KEY }) : Variables
  const parsed = schema.safeParse(dropEmpty(env))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new DemoError('bad-setting', `${issue?.path.join('.')} ${issue?.message}`)
  }
  const variables = parsed.data
  return {
    host: variables.HOST,
    port: Number(variables.PORT),
    allowedHosts: [...variables.ALLOWED_HOSTS, ...(isIP(variables.HOST) ? [] : [variables.HOST])],
    allowedOrigins: variables.ALLOWED_ORIGINS,
    dataDir: resolve(DEMO_FOLDER, variables.DATA_DIR),
    databaseUrl: variables.DATABASE_URL,
    instance: variables.DEMO_INSTANCE,
    model: variables.GEMINI_MODEL,
    liveModel: variables.GEMINI_LIVE_MODEL,
    geminiKey: variables.GOOGLE_API_KEY ?? variables.GEMINI_API_KEY,
    prices: variables.MODEL_PRICES,
    geminiBaseUrl: variables.GOOGLE_GEMINI_BASE_URL,
    emulatorUrl: variables.DEMO_EMULATOR_URL,
    weatherKey: variables.OPENWEATHER_API_KEY,
    apiKey: variables.API_KEY,
    approvalDeadlineMs: Number(variables.DEMO_APPROVAL_DEADLINE_MS),
    reminderMs: Number(variables.DEMO_REMINDER_MS),
    leaseMs: variables.DEMO_LEASE_MS,
    approverCode: variables.DEMO_APPROVER_CODE,
  }
}

const API_KEY = secret('a key to give to clients')

const Variables = z.object({
  HOST: z
    .string()
    .regex(/^[\w.:-]+$/, 'is not a host name or address. Set it to 127.0.0.1, or leave it out.')
    .default('127.0.0.1'),
  PORT: z
    .string()
    .refine(isPort, 'is not a port. Set it to a whole number from 0 to 65535, or leave it out.')
    .default('8000'),
  ALLOWED_HOSTS: z
    .string()
    .regex(
      /^\s*\.?[\w.-]+(?::\d+)?(?:\s*,\s*\.?[\w.-]+(?::\d+)?)*\s*$/,
      'is not a list of host names. Set it to names with commas between them, like chat.example.com, or leave it out.',
    )
    .transform((names) => names.split(',').map((name) => name.trim()))
    .default([]),
  ALLOWED_ORIGINS: z
    .string()
    .transform((origins) => origins.split(',').map((origin) => origin.trim()))
    .refine(
      (origins) => origins.every(isOrigin),
      'is not a list of origins. Set it to origins with commas between them, like http://localhost:3000, or leave it out.',
    )
    .default([]),
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: z
    .string()
    // The message must not contain the URL, which holds a password.
    .refine(
      (url) => URL.canParse(url) && /^postgres(ql)?:/.test(url),
      'is not a URL of PostgreSQL. Set it to one like postgres://user:password@localhost/chats, or leave it out to use SQLite.',
    )
    .optional(),
  DEMO_INSTANCE: z
    .string()
    .regex(/^[\w.-]{1,30}$/, 'is not a short name. Set it to one like A, or leave it out.')
    .optional(),
  DEMO_EMULATOR_URL: httpUrl(),
  DEMO_APPROVER_CODE: z
    .string()
    .min(8, 'is too short. Use at least 8 characters, or leave it out.')
    .optional(),
  GEMINI_MODEL: z
    .string()
    .regex(/^[\w.-]+$/, 'is not the name of a model. Set it to one like gemini-2.5-flash.')
    .default('gemini-2.5-flash'),
  GEMINI_LIVE_MODEL: z
    .string()
    .regex(
      /^[\w.-]+$/,
      'is not the name of a model. Set it to that of a live model, or leave it out.',
    )
    .default('gemini-2.5-flash-native-audio-preview-12-2025'),
  MODEL_PRICES: ModelPrices.default({}),
  GOOGLE_API_KEY: secret('a key of the Gemini API'),
  GEMINI_API_KEY: secret('a key of the Gemini API'),
  GOOGLE_GEMINI_BASE_URL: httpUrl(),
  OPENWEATHER_API_KEY: secret('a key of OpenWeatherMap'),
  API_KEY: API_KEY.refine(
    (key) => key === undefined || key.length >= 16,
    'is too short to be a secret. Use at least 16 characters, or set DEMO_ALLOW_SHORT_API_KEY=1 for clients with a fixed key.',
  ),
  DEMO_APPROVAL_DEADLINE_MS: z
    .string()
    .regex(
      /^[1-9]\d{0,9}$/,
      'is not a time in milliseconds. Set it to a whole number like 600000, or leave it out.',
    )
    .default('600000'),
  DEMO_REMINDER_MS: z
    .string()
    .regex(
      /^[1-9]\d{0,9}$/,
      'is not a time in milliseconds. Set it to a whole number like 60000, or leave it out.',
    )
    .default('60000'),
  DEMO_LEASE_MS: z
    .string()
    .regex(
      /^[1-9]\d{3,6}$/,
      'is not a time of at least 1000 milliseconds. Set it to a whole number like 15000, or leave it out.',
    )
    .transform(Number)
    .optional(),
})

function httpUrl() {
  const error = 'is not an http or https URL. Correct it, or leave it out.'
  return z.url({ protocol: /^https?$/, error }).optional()
}

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535
}

/** A key is sent in a header, so it is printable ASCII without spaces. The message must not contain it. */
function secret(what: string) {
  return z
    .string()
    .regex(/^[\x21-\x7e]+$/, `does not look like ${what}: it holds spaces or other characters.`)
    .optional()
}

/** An empty variable (`PORT= npm start`) counts as unset. */
function dropEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()))
}
