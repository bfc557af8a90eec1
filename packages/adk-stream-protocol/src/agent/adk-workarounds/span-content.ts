/**
 * Keeps prompts, replies and arguments out of ADK's spans (OB2). ADK 2.0.0 writes them unless this environment variable is `false`,
 * reads it for every span, and has no other option. A span processor of the application would see them first, and a plugin is not
 * called for agents that are used as tools. An application that wants the content sets the variable to `true`.
 */
export function hideSpanContent(): void {
  process.env['ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS'] ??= 'false'
}
