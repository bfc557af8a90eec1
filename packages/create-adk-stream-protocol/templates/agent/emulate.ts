/** Without a key, the emulator takes the place of Gemini. It replies as `model.yaml` says, and otherwise calls the tool that the message names. */
import { existsSync } from 'node:fs'

import {
  firstOf,
  loadScenario,
  scenarioResponder,
  scriptResponder,
  startEmulator,
  toolResponder,
} from 'gemini-emulator'

if (existsSync('.env')) process.loadEnvFile()
if (!process.env.GOOGLE_API_KEY) {
  const scenario = scenarioResponder(await loadScenario('model.yaml'))
  const respond = firstOf(scriptResponder, scenario, toolResponder)
  const { baseUrl } = await startEmulator({ respond, paceMs: 15 })
  process.env.GOOGLE_GEMINI_BASE_URL = baseUrl
  process.env.GOOGLE_API_KEY = 'any'
  console.log('The emulator replies. Set GOOGLE_API_KEY in .env to use Gemini.')
}
