/** Checks what this project assumes about Gemini on the real service: `npm run verify:gemini`. */
import { ASSUMPTIONS, type Finding } from './checks.ts'
import { Gemini } from './gemini.ts'

const { GOOGLE_API_KEY, GEMINI_API_KEY, GOOGLE_GEMINI_BASE_URL } = process.env
const { VERIFY_MODEL, VERIFY_LIVE_MODEL } = process.env
const apiKey = GOOGLE_API_KEY ?? GEMINI_API_KEY
const only = process.argv.slice(2)

if (!apiKey) {
  print(`Checks what this project assumes about Gemini. It needs a key and costs a few cents:

  GOOGLE_API_KEY=… npm run verify:gemini
  GOOGLE_API_KEY=… npm run verify:gemini -- live-turn live-resumption

VERIFY_MODEL and VERIFY_LIVE_MODEL choose other models. To try it without a key, start the emulator
(npx gemini-emulator) and set GOOGLE_GEMINI_BASE_URL and GOOGLE_API_KEY=any as it prints.
docs/gemini-assumptions.md lists the assumptions.`)
  process.exit(2)
}

const gemini = new Gemini({
  apiKey,
  ...(GOOGLE_GEMINI_BASE_URL !== undefined && { baseUrl: GOOGLE_GEMINI_BASE_URL }),
  model: VERIFY_MODEL ?? 'gemini-3-flash-preview',
  liveModel: VERIFY_LIVE_MODEL ?? 'gemini-2.5-flash-native-audio-preview-12-2025',
  isEmulated: GOOGLE_GEMINI_BASE_URL !== undefined,
})
const chosen = ASSUMPTIONS.filter(({ id }) => only.length === 0 || only.includes(id))
let differing = 0
for (const { id, rules, claim, check } of chosen) {
  const found = check ? await find(check) : undefined
  if (found && !found.holds) differing += 1
  print(`${describe(found)} ${id} (${rules.join(', ')}): ${claim}`)
  if (found) print(`        seen: ${found.seen.slice(0, 300)}`)
}
print(`${differing} of ${chosen.length} assumptions differ.`)
process.exit(differing === 0 ? 0 : 1)

async function find(check: (target: Gemini) => Promise<Finding>): Promise<Finding> {
  try {
    return await check(gemini)
  } catch (error) {
    return { holds: false, seen: String(error) }
  }
}

function describe(found: Finding | undefined): string {
  if (!found) return 'by hand'
  return found.holds ? 'holds  ' : 'DIFFERS'
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
