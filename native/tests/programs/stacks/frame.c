/* A library with one function, whose frame has ROOM bytes. */
void call_back(void (*what)(void)) {
  volatile char room[ROOM];
  room[0] = 1;
  what();
  room[1] = room[0];
}
