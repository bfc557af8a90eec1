import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'

import { readTemplate, TEMPLATES } from './templates.ts'

const NAMES = Object.keys(TEMPLATES).join(', ')
const DEFAULTS = { folder: 'adk-chat', template: 'node' }

const HELP = `npm create adk-stream-protocol [folder] -- [options]

Creates a project with an ADK agent, a chat page, a tool that needs approval, a policy, a test and a workflow for CI.

  folder               a new or empty folder (default ${DEFAULTS.folder}); . is the current one
  --template <name>    ${NAMES} (default ${DEFAULTS.template})
  --yes                do not ask, use the defaults
  --version, --help

Exit codes: 0 created, 2 not created.
`

/** A sentence for the person who runs the command. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

process.exitCode = await run(process.argv.slice(2), process.env)

type Environment = Readonly<Record<string, string | undefined>>

/** Runs the command. Returns its exit code. */
async function run(args: readonly string[], env: Environment): Promise<number> {
  try {
    checkNode()
    const { values, positionals } = readArguments(args)
    if (values.help) process.stdout.write(HELP)
    else if (values.version) process.stdout.write(`${readVersion()}\n`)
    else {
      const isAsked = args.length === 0 && process.stdin.isTTY && process.stdout.isTTY
      const choice = isAsked ? await ask() : readChoice(positionals, values.template)
      process.stdout.write(create(choice, env))
    }
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`create-adk-stream-protocol: ${error.message}\n`)
    return 2
  }
}

function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  throw new UsageError(`Node 20.19 or later is needed. This is Node ${process.versions.node}.`)
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        template: { type: 'string' },
        yes: { type: 'boolean', short: 'y' },
        version: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (cause) {
    const [reason] = cause instanceof Error ? cause.message.split('. ') : [String(cause)]
    throw new UsageError(`${reason}. --help lists the options.`, { cause })
  }
}

/** What to create, and where. */
interface Choice {
  readonly folder: string
  readonly template: string
}

function readChoice(positionals: readonly string[], template: string | undefined): Choice {
  const [folder = DEFAULTS.folder, other] = positionals
  if (other !== undefined)
    throw new UsageError(
      `Name one folder, not also ${other}. npm passes options on only after --: npm create adk-stream-protocol ${folder} -- --template hono`,
    )
  return { folder, template: template ?? DEFAULTS.template }
}

async function ask(): Promise<Choice> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const folder = await terminal.question(`Folder (${DEFAULTS.folder}): `)
    const template = await terminal.question(`Template: ${NAMES} (${DEFAULTS.template}): `)
    return {
      folder: folder.trim() || DEFAULTS.folder,
      template: template.trim() || DEFAULTS.template,
    }
  } finally {
    terminal.close()
  }
}

/** Writes the project. Returns what to print. */
function create({ folder, template }: Choice, env: Environment): string {
  if (!Object.hasOwn(TEMPLATES, template))
    throw new UsageError(`There is no template ${template}. The templates are ${NAMES}.`)
  const place = path.resolve(folder)
  checkFolder(place, folder)
  const files = readTemplate(template, toPackageName(path.basename(place)))
  try {
    for (const { file, text } of files) {
      mkdirSync(path.dirname(path.join(place, file)), { recursive: true })
      // Fails if something else has written the file since the check.
      writeFileSync(path.join(place, file), text, { flag: 'wx' })
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new UsageError(`${folder} cannot be written: ${reason}.`, { cause })
  }
  const relative = path.relative(process.cwd(), place)
  const commands = nextCommands(relative, env).map((command) => `  ${command}\n`)
  return `Created ${relative || '.'} with the template ${template}: ${files.length} files.\n\n${commands.join('')}`
}

/** Nothing is ever overwritten. A folder with only `.git` is a new repository. */
function checkFolder(place: string, folder: string): void {
  if (!existsSync(place)) return
  if (!statSync(place).isDirectory()) throw new UsageError(`${folder} is a file, not a folder.`)
  const found = readdirSync(place).filter((name) => name !== '.git')
  if (found.length === 0) return
  const some = found.length > 3 ? [...found.slice(0, 3), '…'] : found
  throw new UsageError(`The folder ${folder} is not empty (${some.join(', ')}). Name a new folder.`)
}

function nextCommands(folder: string, env: Environment): string[] {
  // Each package manager names itself.
  const [, manager = 'npm'] =
    /^(npm|pnpm|yarn|bun)\//.exec(env['npm_config_user_agent'] ?? '') ?? []
  const commands = [`${manager} install`, `${manager} run dev`, `${manager} run test`]
  if (folder === '') return commands
  return [`cd ${/\s/.test(folder) ? `"${folder}"` : folder}`, ...commands]
}

/** Returns the nearest name that npm accepts. */
function toPackageName(name: string): string {
  const accepted = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[-._]+|[-._]+$/g, '')
  return accepted || DEFAULTS.folder
}

function readVersion(): string {
  const json: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  )
  return typeof json === 'object' && json !== null && 'version' in json ? String(json.version) : ''
}
