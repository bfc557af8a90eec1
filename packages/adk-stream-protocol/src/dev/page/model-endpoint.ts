import { LoadError } from '../load/load-error.ts'

/** Whether the environment has a key of the Gemini API, or settings of Vertex AI. */
export function hasCredentials(env: NodeJS.ProcessEnv): boolean {
  return (
    KEYS.some((name) => Boolean(env[name])) ||
    VERTEX_SWITCHES.some((name) => /^(?:1|true)$/i.test(env[name] ?? ''))
  )
}

/** The variables that ADK and Google's SDK read. */
const KEYS = ['GOOGLE_GENAI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_API_KEY']
const VERTEX_SWITCHES = ['GOOGLE_GENAI_USE_ENTERPRISE', 'GOOGLE_GENAI_USE_VERTEXAI']

/** Throws a `LoadError` if the real model is required and there is no key. */
export function checkCredentials(env: NodeJS.ProcessEnv): void {
  if (!hasCredentials(env))
    throw new LoadError(
      'no-key',
      '`--model gemini` needs a key. Set GOOGLE_API_KEY in .env, or leave the option out to use the emulator.',
    )
}

/** Sends the requests of every Gemini model of this process to an emulator, in place of Google. A real key is not sent there. */
export function useEmulator(env: NodeJS.ProcessEnv, baseUrl: string): void {
  for (const name of VERTEX_SWITCHES) delete env[name]
  for (const name of KEYS) delete env[name]
  env['GOOGLE_API_KEY'] = 'emulator'
  env['GOOGLE_GEMINI_BASE_URL'] = baseUrl
  // For models whose code says `vertexai: true`.
  env['GOOGLE_VERTEX_BASE_URL'] = baseUrl
}
