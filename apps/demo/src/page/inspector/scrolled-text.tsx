/** Text that scrolls in its own frame, and so must be reachable by keyboard. */
export function ScrolledText({ children }: { readonly children: string }) {
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
  return <pre tabIndex={0}>{children}</pre>
}
