import { parseArgs } from 'node:util'

import { type CommandOutput, runCommand } from '../shared/command.ts'
import { CHECKS } from './checks.ts'
import { openCounter } from './execution-counter.ts'
import type { Protocol } from './load-clients.ts'
import { loadClients } from './load-clients.ts'
import type { CheckResult } from './run-checks.ts'
import { runChecks } from './run-checks.ts'

const USAGE = `Usage:
  adk-stream-protocol conform <url> --prompt <text> [options]

Tests a chat backend with tool approval from outside, with the real clients of your project: the AI SDK (ai 6 and 7), or the client of
AG-UI (@ag-ui/client). It knows nothing of the server behind the URL.

  --prompt <text>      a message that makes the agent call one tool that needs approval. {key} is replaced by a word that is new for each
                       check: let it become an argument of the tool. {counter} is replaced by a URL that ends with the key, to which the
                       tool sends a POST when it runs
  --count <url>        a URL of your backend that returns how often the tool has run with a {key}: a number, or { "count": number }
  --protocol <name>    ui (the AI SDK's UI message stream) or ag-ui. Default: ag-ui if the path of the URL contains ag-ui, else ui
  --client <package>   the client; may be repeated. Default: ai, ai-6, ai-7, or @ag-ui/client, @ag-ui/client-0, as installed here
  --header <line>      a header of the person, "name: value"; may be repeated
  --stranger <line>    a header of another person; may be repeated
  --history <url>      where a page loads the conversation: a GET that returns UI messages, or AG-UI's connect. {chat} is the id of the chat.
                       Default: the page has kept its messages
  --plain <text>       a message that the agent answers with text. Default: Hello.
  --error <text>       a message that makes the run fail
  --host <name>        the name under which the backend reaches this computer, for {counter}. Default: 127.0.0.1
  --only <check>       makes only this check; may be repeated: ${CHECKS.map(({ name }) => name).join(', ')}
  --settle <ms>        how long to wait for an execution that must not happen. Default: 300
  --timeout <ms>       how long a request may take. Default: 30000
  --json               prints one JSON object

Without --count and {counter}, executions are seen in the streams only, and some checks are left out.
The exit code is 0 if no check failed, 1 if one failed, and 2 if the command failed.`

const OPTIONS = {
  prompt: { type: 'string' },
  count: { type: 'string' },
  protocol: { type: 'string' },
  client: { type: 'string', multiple: true },
  header: { type: 'string', multiple: true },
  stranger: { type: 'string', multiple: true },
  history: { type: 'string' },
  plain: { type: 'string', default: 'Hello.' },
  error: { type: 'string' },
  host: { type: 'string', default: '127.0.0.1' },
  only: { type: 'string', multiple: true },
  settle: { type: 'string', default: '300' },
  timeout: { type: 'string', default: '30000' },
  json: { type: 'boolean' },
} as const

/** Runs `conform`. Returns the exit code. */
export function runConformCommand(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: USAGE, args }, output, async () => {
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
    const [, url, ...others] = positionals
    const { prompt } = values
    if (url === undefined || prompt === undefined || others.length > 0) return undefined
    const protocol = readProtocol(values.protocol, url)
    const headers = readHeaders(values.header ?? [])
    const clients = await loadClients(protocol, process.cwd(), values.client)
    await using counter = await openCounter({
      prompt,
      countUrl: values.count,
      host: values.host,
      headers,
    })
    const backend = {
      url,
      prompt,
      headers,
      counter,
      plainPrompt: values.plain,
      errorPrompt: values.error,
      strangerHeaders: values.stranger && readHeaders(values.stranger),
      historyUrl: values.history,
      settleMs: readNumber('settle', values.settle),
      timeoutMs: readNumber('timeout', values.timeout),
    }
    const results: CheckResult[] = []
    for (const client of clients) results.push(...(await runChecks(client, backend, values.only)))
    if (values.json ?? false) {
      const report = { url, protocol, executions: counter.description, results }
      await output.print(JSON.stringify(report, undefined, 2))
    } else {
      await output.print(`${url} (${protocol}); executions: ${counter.description}`)
      for (const client of clients) await printResults(client.name, results, output)
    }
    return results.some(({ result }) => result === 'failed') ? 1 : 0
  })
}

const MARKS = { passed: 'ok', failed: 'FAIL', skipped: '-' } as const

async function printResults(
  client: string,
  results: readonly CheckResult[],
  { print }: CommandOutput,
): Promise<void> {
  const own = results.filter((each) => each.client === client)
  await print(`\n${client}`)
  for (const { name, title, result, reason } of own) {
    await print(`  ${MARKS[result].padEnd(5)}${name.padEnd(11)}${title}`)
    if (reason !== undefined) await print(`${' '.repeat(18)}${reason}`)
  }
  const count = (wanted: CheckResult['result']): number =>
    own.filter(({ result }) => result === wanted).length
  await print(
    `  ${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} not checked`,
  )
}

function readProtocol(named: string | undefined, url: string): Protocol {
  if (named === undefined) return new URL(url).pathname.includes('ag-ui') ? 'ag-ui' : 'ui'
  if (named !== 'ui' && named !== 'ag-ui')
    throw new TypeError(`--protocol is ui or ag-ui, not ${named}.`)
  return named
}

function readHeaders(lines: readonly string[]): Record<string, string> {
  const entries = lines.map((line) => {
    const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new TypeError(`A header is "name: value", not ${line}.`)
    return [name.toLowerCase(), value] as const
  })
  return Object.fromEntries(entries)
}

function readNumber(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0)
    throw new TypeError(`--${name} is a number of milliseconds, not ${text}.`)
  return value
}
