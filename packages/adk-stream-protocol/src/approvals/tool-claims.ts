/** What an MCP server claims about a tool. */
export interface ToolClaims {
  /** The prefix of the `MCPToolset` that the tool comes from. Undefined for other tools and for a toolset without a prefix. */
  readonly server?: string
  /** The name of the tool for people, as its MCP server gives it. The title of an approval if the policy gives none. */
  readonly title?: string
  /**
   * The annotations of the MCP tool. They are claims of the server: rely on them only if you trust it. Without
   * annotations, and for tools that are not from an MCP server: not read-only, destructive, not idempotent, open world.
   */
  readonly annotations: ToolAnnotations
}

/**
 * The annotations of an MCP tool.
 *
 * @inline
 */
interface ToolAnnotations {
  /** The tool changes nothing. */
  readonly readOnlyHint: boolean
  /** The tool may delete or overwrite something. False if the tool only adds, or is read-only. */
  readonly destructiveHint: boolean
  /** A second call with the same arguments changes nothing more. */
  readonly idempotentHint: boolean
  /** The tool reaches systems that its server does not control, such as the web. */
  readonly openWorldHint: boolean
}

/**
 * Reads the annotations of an MCP tool. A missing or invalid one has the default of the MCP specification, which is the
 * less safe property. A tool that claims to be both read-only and destructive is not read-only.
 */
export function readAnnotations(given: Readonly<Record<string, unknown>>): ToolAnnotations {
  const readOnlyHint = given['readOnlyHint'] === true && given['destructiveHint'] !== true
  return {
    readOnlyHint,
    destructiveHint: !readOnlyHint && given['destructiveHint'] !== false,
    idempotentHint: given['idempotentHint'] === true,
    openWorldHint: given['openWorldHint'] !== false,
  }
}

/** The claims about a tool whose server claims nothing. */
export const NO_CLAIMS: ToolClaims = { annotations: readAnnotations({}) }
