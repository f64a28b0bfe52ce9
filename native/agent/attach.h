/* Standing in front of libc and ExecuTorch in a process that was not started under the agent. */
#pragma once

namespace etmem::attach {

/* Writes our functions into the slots of every loaded module, and of modules that appear later. The number of slots
 * written. */
unsigned attach();

/* Gives every slot back what it held. The agent itself stays: a thread may be inside it. */
void detach();

}  // namespace etmem::attach
