import { useAdkLabels } from '../provider.tsx'
import { type Call, getToolName, type Arguments } from '../reading/call.ts'
import { isRecord } from '../../protocol/guards.ts'
import { findLookAlikes, readPieces } from '../reading/shown-text.ts'

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
        <LiteralText text={JSON.stringify(value ?? null, null, 2)} />
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
  return Object.fromEntries(
    Object.entries(args).filter(
      ([, value]) => !text.includes(show(value)) || findLookAlikes(show(value)).length > 0,
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
  /** The element around the text. Default: none. */
  readonly in?: 'code' | 'dd' | 'dt' | 'figcaption' | 'p' | 'q' | 'span' | 'strong' | undefined
  /** The class and the id of that element. */
  readonly className?: string | undefined
  readonly id?: string | undefined
}

/**
 * Shows text that a person decides about exactly as it is. Its direction does not affect the text around it. Characters that are
 * invisible or reorder others appear as their code point.
 */
export function LiteralText({ text, in: Element, className, id }: LiteralTextProps) {
  const literal = (
    <bdi className="adk-literal">
      {readPieces(text).map((piece, index) =>
        piece.kind === 'text' ? (
          piece.text
        ) : (
          // The pieces of a text keep their order.
          <mark key={index} className="adk-hidden-character">
            {`⟨${piece.name}⟩`}
          </mark>
        ),
      )}
    </bdi>
  )
  if (!Element) return literal
  return (
    <Element className={className} id={id}>
      {literal}
    </Element>
  )
}

/** Warns of words with look-alike letters. */
export function LookAlikeWarning({ text }: { readonly text: string }) {
  const { approval } = useAdkLabels()
  const words = findLookAlikes(text)
  if (words.length === 0) return null
  return <p className="adk-look-alike">{approval.lookAlike(words.join(', '))}</p>
}
