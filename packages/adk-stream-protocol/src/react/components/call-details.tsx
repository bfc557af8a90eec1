import { useAdkLabels } from '../provider.tsx'
import { type Call, getToolName, type Arguments } from '../reading/call.ts'
import { isRecord } from '../../protocol/guards.ts'
import { findLookAlikes, readPieces, toLiteral } from '../../shared/literal-text.ts'
import { splitAtValues } from '../reading/quoted-values.ts'

/** Shows the function, the arguments and the result of a call in a collapsed section. */
export function CallDetails({ call }: { readonly call: Call }) {
  const { tool } = useAdkLabels()
  return (
    <details className="adk-details">
      <summary>{tool.details}</summary>
      <FunctionName name={getToolName(call)} />
      <Json label={tool.arguments} value={call.input} />
      {call.state === 'output-available' && <Json label={tool.result} value={call.output} />}
    </details>
  )
}

/** Shows the name of a tool in the code, because its title may be a claim of an MCP server. */
export function FunctionName({ name }: { readonly name: string }) {
  const { tool } = useAdkLabels()
  return (
    <p className="adk-function">
      {tool.functionName} <LiteralText in="code" text={name} />
    </p>
  )
}

interface JsonProps {
  readonly label: string
  readonly value: unknown
}

function Json({ label, value }: JsonProps) {
  return (
    <figure className="adk-code">
      <figcaption>{label}</figcaption>
      <pre>
        <LiteralText multiline text={JSON.stringify(value ?? null, null, 2)} />
      </pre>
    </figure>
  )
}

/** Props of `ArgumentsTable`. */
export interface ArgumentsTableProps {
  /** The arguments that the model requested. */
  readonly args: Arguments
  /** The edited arguments that ran instead. */
  readonly edited?: Arguments | undefined
  /** Whether the edited arguments were not sent. Default false. */
  readonly isUnsent?: boolean
  /** Display names of the arguments. Default: those of the labels. */
  readonly titles?: Readonly<Record<string, string>> | undefined
}

/** Returns the arguments that a text does not contain. They are shown next to it. */
export function findUnmentioned(args: Arguments, text: string): Arguments {
  const literal = toLiteral(text)
  return Object.fromEntries(
    Object.entries(args).filter(
      ([, value]) =>
        !literal.includes(toLiteral(show(value))) || findLookAlikes(show(value)).length > 0,
    ),
  )
}

/** Shows the arguments of a call, one per row. If they were edited, a second column shows what ran. */
export function ArgumentsTable({ args, edited, isUnsent = false, titles }: ArgumentsTableProps) {
  const labels = useAdkLabels()
  const named = titles ?? labels.tool.argumentNames
  const names = [...new Set([...Object.keys(args), ...Object.keys(edited ?? {})])]
  const shown = names.filter((name) => show(args[name]) !== '' || show(edited?.[name]) !== '')
  if (shown.length === 0) return null
  return (
    <table className="adk-arguments">
      <caption className="adk-hidden">{labels.tool.arguments}</caption>
      <thead className={edited ? undefined : 'adk-hidden'}>
        <tr>
          <th scope="col">{labels.approval.argument}</th>
          <th scope="col">{edited ? labels.approval.requestedValue : labels.approval.value}</th>
          {edited && (
            <th scope="col">
              {isUnsent ? labels.approval.typedValue : labels.approval.approvedValue}
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {shown.map((name) => (
          <tr key={name} data-changed={edited && show(edited[name]) !== show(args[name])}>
            <th scope="row">
              <LiteralText text={toName(name, named)} />
            </th>
            <Cell value={args[name]} names={named} />
            {edited && <Cell value={edited[name]} names={named} />}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface CellProps {
  readonly value: unknown
  /** Display names of the fields of objects. */
  readonly names: Readonly<Record<string, string>>
}

function Cell({ value, names }: CellProps) {
  return (
    <td>
      {value !== undefined && <ValueView value={value} names={names} />}
      <LookAlikeWarning text={show(value)} />
    </td>
  )
}

/** Values inside others deeper than this are shown as JSON. */
const MAX_DEPTH = 6

/** Shows a value exactly as it is: a list as a list, an object as rows, and anything else as text. */
export function ValueView({
  value,
  names = {},
  depth = 0,
}: Partial<CellProps> & { depth?: number }) {
  const { tool } = useAdkLabels()
  const inner = { names, depth: depth + 1 }
  const isNested = depth < MAX_DEPTH && typeof value === 'object' && value !== null
  // An empty text inside a list would not be visible.
  const isEmpty = isNested ? Object.keys(value).length === 0 : value === '' && depth > 0
  if (isEmpty) return <em className="adk-empty">{tool.emptyValue}</em>
  if (!isNested) return <LiteralText text={show(value)} />
  const entries = Object.entries(value)
  if (!isRecord(value))
    return (
      <ul className="adk-list">
        {entries.map(([index, item]) => (
          <li key={index}>
            <ValueView value={item} {...inner} />
          </li>
        ))}
      </ul>
    )
  return (
    <dl className="adk-nested">
      {entries.map(([name, item]) => (
        <div key={name}>
          <LiteralText in="dt" text={toName(name, names)} />
          <dd>
            <ValueView value={item} {...inner} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function toName(name: string, names: Readonly<Record<string, string>>): string {
  return Object.hasOwn(names, name) ? (names[name] ?? name) : name
}

function show(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

interface LiteralTextProps {
  readonly text: string
  /** The arguments that the text mentions. Those that could be mistaken for the text around them are quoted. */
  readonly values?: Arguments | undefined
  /** Whether the text keeps its lines and spaces, because it has a frame of its own. Default false: it is one line. */
  readonly multiline?: boolean | undefined
  /** The element around the text. Default: none. */
  readonly in?: 'code' | 'dd' | 'dt' | 'figcaption' | 'p' | 'q' | 'span' | 'strong' | undefined
  /** The class and the id of that element. */
  readonly className?: string | undefined
  readonly id?: string | undefined
}

/**
 * Shows text that a person decides about exactly as it is, in one line. Its direction does not affect the text around it. Line breaks, runs of
 * spaces, and characters that are invisible, reorder others or look like others get a mark.
 */
export function LiteralText(props: LiteralTextProps) {
  const { text, values = {}, multiline, in: Element, className, id } = props
  const literal = (
    <bdi className="adk-literal">
      {splitAtValues(toLiteral(text, { multiline }), values).map((part, index) => {
        // The parts of a text keep their order.
        const key = String(index)
        const pieces = <Pieces key={key} text={part.text} multiline={multiline} />
        return part.isValue ? (
          <q key={key} className="adk-value">
            {pieces}
          </q>
        ) : (
          pieces
        )
      })}
    </bdi>
  )
  if (!Element) return literal
  return (
    <Element className={className} id={id}>
      {literal}
    </Element>
  )
}

function Pieces({ text, multiline }: Pick<LiteralTextProps, 'text' | 'multiline'>) {
  return readPieces(text, { multiline, isPart: true }).map((piece, index) =>
    piece.kind === 'text' ? (
      piece.text
    ) : (
      // The pieces of a text keep their order.
      <mark key={index} className="adk-hidden-character">
        {piece.text}
      </mark>
    ),
  )
}

/** Warns of words with look-alike letters, and names the letters. */
export function LookAlikeWarning({ text }: { readonly text: string }) {
  const { approval } = useAdkLabels()
  return findLookAlikes(text).map(({ word, letters }) => (
    <p key={word} className="adk-look-alike">
      {approval.lookAlike({ word: toLiteral(word), letters })}
    </p>
  ))
}
